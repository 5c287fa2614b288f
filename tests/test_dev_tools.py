"""The parts of tools/ that need neither network nor ComfyUI."""

from __future__ import annotations

import json
import socket
import struct
from pathlib import Path

import pytest
from jacobi_ar.tools import browser, comfy_server, comfy_source, commands, demo, environment, workflow_api
from jacobi_ar.tools.client import Refused, Run, read_preview
from jacobi_ar.tools.environment import Environment, Wishes, torchvision_for
from jacobi_ar.tools.problem import Problem, last_lines
from jacobi_ar.tools.stamps import Stamps

# ---- the converter -----------------------------------------------------------------------------------------

LOAD = {"display_name": "Load", "input": {"required": {"name": [["a", "b"], {}]}}, "input_order": None}
GENERATE = {
    "display_name": "Generate",
    "input": {
        "required": {
            "model": ["MODEL", {}],
            "seed": ["INT", {"default": 0, "control_after_generate": True}],
            "guidance": ["FLOAT", {"default": 2.0}],
        },
        "optional": {
            "mask": ["MASK", {}],
            "rows": ["INT", {"default": 0}],
            "late": ["COMBO", {"options": ["x"]}],
        },
    },
    "input_order": {"required": ["model", "seed", "guidance"], "optional": ["mask", "rows", "late"]},
}
CLASSES = {"Load": LOAD, "Generate": GENERATE}


def node(id_: int, class_: str, values: list | dict, inputs: list | None = None, **more: object) -> dict:
    return {"id": id_, "type": class_, "widgets_values": values, "inputs": inputs or [], "mode": 0, **more}


def two_nodes(**generate: object) -> dict:
    sockets = [{"name": "model", "link": 7}]
    changed = {"widgets_values": [2**64 - 1, "randomize", 1.5, 16], **generate}
    second = {**node(2, "Generate", [], sockets), **changed}
    return {"nodes": [node(1, "Load", ["b"]), second], "links": [[7, 1, 0, 2, 0, "MODEL"]]}


def test_values_by_position_and_links_become_inputs_by_name() -> None:
    prompt = workflow_api.to_api(two_nodes(), CLASSES)
    assert prompt["1"] == {"class_type": "Load", "inputs": {"name": "b"}, "_meta": {"title": "Load"}}
    # control_after_generate has a slot in the saved values and is no input; "late" was appended after saving.
    assert prompt["2"]["inputs"] == {"seed": 2**64 - 1, "guidance": 1.5, "rows": 16, "model": ["1", 0]}


def test_saved_values_by_name_are_taken_too() -> None:
    workflow = two_nodes(widgets_values={"guidance": 3.0, "seed": 5, "videopreview": 1})
    assert workflow_api.to_api(workflow, CLASSES)["2"]["inputs"] == {
        "seed": 5,
        "guidance": 3.0,
        "model": ["1", 0],
    }


def test_a_linked_widget_keeps_its_slot_and_takes_the_link() -> None:
    workflow = two_nodes(inputs=[{"name": "seed", "link": 7, "widget": {"name": "seed"}}])
    assert workflow_api.to_api(workflow, CLASSES)["2"]["inputs"] == {
        "seed": ["1", 0],
        "guidance": 1.5,
        "rows": 16,
    }


def test_reroutes_are_followed_and_notes_left_out() -> None:
    workflow = two_nodes()
    workflow["nodes"] += [
        node(3, "Reroute", [], [{"name": "", "link": 8}]),
        node(4, "MarkdownNote", ["text"]),
    ]
    workflow["links"] = [[7, 3, 0, 2, 0, "MODEL"], [8, 1, 0, 3, 0, "*"]]
    prompt = workflow_api.to_api(workflow, CLASSES)
    assert set(prompt) == {"1", "2"} and prompt["2"]["inputs"]["model"] == ["1", 0]


def test_a_muted_node_and_the_links_from_it_are_left_out() -> None:
    workflow = two_nodes()
    workflow["nodes"][0]["mode"] = 2
    prompt = workflow_api.to_api(workflow, CLASSES)
    assert set(prompt) == {"2"} and "model" not in prompt["2"]["inputs"]


def test_what_the_converter_cannot_do_is_said() -> None:
    with pytest.raises(Problem, match="bypassed"):
        workflow_api.to_api(two_nodes(mode=4), CLASSES)
    with pytest.raises(Problem, match="class Generate"):
        workflow_api.to_api(two_nodes(), {"Load": LOAD})


def test_another_decoder_comes_with_its_own_defaults() -> None:
    classes = {
        "JacobiARDecoderA": {"input": {"required": {"window": ["INT", {"default": 31}]}}},
        "JacobiARDecoderB": {"input": {"required": {"draw": ["COMBO", {"options": ["fresh", "coupled"]}]}}},
    }
    prompt = {"3": {"class_type": "JacobiARDecoderA", "inputs": {"window": 8}}}
    assert workflow_api.with_decoder(prompt, "JacobiARDecoderA", classes) == prompt
    changed = workflow_api.with_decoder(prompt, "JacobiARDecoderB", classes)
    assert changed == {"3": {"class_type": "JacobiARDecoderB", "inputs": {"draw": "fresh"}}}
    assert prompt["3"]["inputs"] == {"window": 8}
    with pytest.raises(KeyError, match="no input 'sead'"):
        workflow_api.with_inputs(prompt, "JacobiARDecoderA", sead=1)


# ---- stamps and the environment ----------------------------------------------------------------------------


def test_a_step_is_done_only_when_its_stamp_says_the_same(tmp_path: Path) -> None:
    stamps = Stamps(tmp_path / "stamps")
    assert not stamps.done("host", "a\nb")
    stamps.write("host", "a\nb")
    assert stamps.done("host", "a\nb") and not stamps.done("host", "a\nc")
    assert [path.name for path in stamps.folder.iterdir()] == ["host"]


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Environment, list[str]]:
    """An environment in which pip and venv only note down what they were asked for."""
    made = Environment(Wishes(tmp_path))
    asked: list[str] = []

    def note(self: Environment, command: list[str], failure: str, advice: str) -> None:
        asked.append(" ".join(command[2:]))

    monkeypatch.setattr(Environment, "run_logged", note)
    monkeypatch.setattr(environment, "runs", lambda python, script="pass": True)
    monkeypatch.setattr(environment, "ask", lambda python, script: "2.13.0")
    made.folder.mkdir()
    return made, asked


def test_a_second_preparation_installs_nothing(offline: tuple[Environment, list[str]]) -> None:
    made, asked = offline
    made.prepare(["einops"], tests=True)
    assert len(asked) == 5  # venv, torch, host, tests, browser
    made.prepare(["einops"], tests=True)
    assert len(asked) == 5


def test_an_interrupted_preparation_goes_on_where_it_stopped(
    offline: tuple[Environment, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, asked = offline
    noted = made.run_logged

    def fails_at_host(command: list[str], failure: str, advice: str) -> None:
        noted(command, failure, advice)
        if "einops" in command:
            raise Problem(failure, advice)

    monkeypatch.setattr(made, "run_logged", fails_at_host)
    with pytest.raises(Problem, match="pip could not install what ComfyUI needs"):
        made.prepare(["einops"], tests=False)
    monkeypatch.setattr(made, "run_logged", noted)
    asked.clear()
    made.prepare(["einops"], tests=False)
    assert len(asked) == 1 and "einops" in asked[0]


def test_a_venv_whose_python_is_gone_is_made_again(
    offline: tuple[Environment, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, asked = offline
    made.make_venv()
    asked.clear()
    monkeypatch.setattr(environment, "runs", lambda python, script="pass": False)
    made.make_venv()
    assert len(asked) == 1


def test_a_torchaudio_built_for_another_torch_is_made_to_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Environment(Wishes(tmp_path))
    package = made.folder / "torchaudio"
    compiled = package / "lib" / "_torchaudio.so"
    asked: list[str] = []

    def pip(arguments: list[str], what: str) -> None:
        asked.append(" ".join(arguments))
        compiled.parent.mkdir(parents=True)
        compiled.write_bytes(b"for another torch")
        (compiled.parent / "__init__.py").touch()

    monkeypatch.setattr(made, "pip", pip)
    monkeypatch.setattr(made, "imports", lambda module: package.is_dir() and not compiled.exists())
    where = {True: str(package / "__init__.py"), False: ""}
    monkeypatch.setattr(environment, "ask", lambda python, script: where[package.is_dir()])
    for _ in range(2):
        made.install_companion("torchaudio", environment.remove_compiled)
    assert asked == ["install --no-deps torchaudio"]
    assert [left.name for left in compiled.parent.iterdir()] == ["__init__.py"]


def test_the_companions_of_a_named_environment_are_never_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Environment(Wishes(tmp_path / "dev", base_python=tmp_path / "python"))
    monkeypatch.setattr(environment, "ask", lambda python, script: str(tmp_path / "torchaudio/__init__.py"))
    with pytest.raises(Problem, match="the torchaudio of .* does not fit its torch"):
        made.folder_of("torchaudio")


def test_torchvision_keeps_step_with_torch() -> None:
    assert torchvision_for("2.13.0+cpu") == "0.28.*"
    assert torchvision_for("2.4.1") == "0.19.*"
    with pytest.raises(Problem, match="torch 3.0.0"):
        torchvision_for("3.0.0")


def test_torch_is_never_taken_from_a_comfyui_requirements_file(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(
        "torch\ntorchvision>=0.1\n# note\nav>=14.2.0 # video\ntorchaudio\ntorchsde\n\n", encoding="utf-8"
    )
    assert comfy_source.requirements_of(tmp_path, named=True) == ["av>=14.2.0", "torchsde", "requests"]
    assert comfy_source.lists_torchaudio(tmp_path)
    assert comfy_source.requirements_of(tmp_path, named=False) == environment.HOST_REQUIREMENTS


def test_a_folder_that_is_no_comfyui_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="no ComfyUI folder"):
        comfy_source.find_comfyui(tmp_path, tmp_path)


def test_a_wheel_with_other_contents_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.whl").write_bytes(b"something else")
    with pytest.raises(Problem, match="SHA-256"):
        comfy_source.unpack(tmp_path / "x.whl", tmp_path / "out")


# ---- the server and the client -----------------------------------------------------------------------------


def test_a_free_port_can_be_bound() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", comfy_server.free_port()))


def test_the_package_is_linked_once_and_again_after_a_move(tmp_path: Path) -> None:
    comfy_server.prepare_base(tmp_path)
    link = tmp_path / "custom_nodes" / comfy_server.PACKAGE_FOLDER
    assert link.resolve() == comfy_server.ROOT
    link.unlink()
    link.symlink_to(tmp_path / "gone")
    comfy_server.prepare_base(tmp_path)
    assert link.resolve() == comfy_server.ROOT


def test_a_server_that_dies_at_once_shows_its_log(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import no_such_module_here", encoding="utf-8")
    with pytest.raises(Problem) as raised, comfy_server.ComfyServer(tmp_path, tmp_path / "dev", cpu=True):
        pass
    assert "No module named 'no_such_module_here'" in raised.value.what
    assert "a package is missing" in raised.value.advice


def test_a_server_that_dies_is_not_blamed_on_optional_nodes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("No module named 'kornia'\nOSError: address already in use\n", encoding="utf-8")
    assert "took the port" in comfy_server.boot_advice(log)


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        with pytest.raises(Problem, match=f"port {taken} cannot be used"):
            comfy_server.ComfyServer(tmp_path, tmp_path / "dev", port=taken, cpu=True).__enter__()
    comfy_server.check_port(taken)


@pytest.mark.parametrize("port", ["0", "-5", "99999", "abc"])
def test_a_number_that_is_no_port_is_refused(port: str) -> None:
    with pytest.raises(SystemExit):
        commands.run(["serve", "--port", port])


def test_only_failures_of_this_package_count() -> None:
    clone = f"/home/me/{comfy_server.PACKAGE_FOLDER}"
    optional = f"Cannot import {clone}/.dev/comfyui/comfy_extras/nodes_audio.py module for custom nodes: none"
    loaded = f"   0.1 seconds: {clone}/.dev/base/custom_nodes/{comfy_server.PACKAGE_FOLDER}"
    assert comfy_server.import_failure(f"{optional}\n{loaded}") == ""
    for separator in "/\\":
        package = separator.join([clone, ".dev", "base", "custom_nodes", comfy_server.PACKAGE_FOLDER])
        failed = f"{optional}\nCannot import {package} module for custom nodes: because"
        assert "because" in comfy_server.import_failure(failed)
        assert comfy_server.import_failure(f"{optional}\n   0.1 seconds (IMPORT FAILED): {package}")


def test_a_preview_frame_is_read() -> None:
    facts = json.dumps({"node_id": "5", "image_type": "image/jpeg"}).encode()
    preview = read_preview(struct.pack(">II", 4, len(facts)) + facts + b"picture")
    assert preview is not None and (preview.node, preview.image) == ("5", b"picture")
    assert read_preview(struct.pack(">II", 1, 2) + b"jpeg") is None


def test_a_refused_prompt_names_the_value() -> None:
    fault = {"message": "Value 99 bigger than max of 30", "details": "guidance"}
    refused = Refused({"error": {"message": "invalid"}, "node_errors": {"4": {"errors": [fault]}}})
    assert "Value 99 bigger than max of 30: guidance" in str(refused)
    assert "no node X" in str(Refused({"error": {"message": "no node X"}, "node_errors": {}}))


# ---- the command line --------------------------------------------------------------------------------------


def test_seeds_have_64_bits() -> None:
    wanted = commands.parser().parse_args(["demo", "--seed", str(2**64 - 1)])
    assert wanted.seed == 2**64 - 1
    with pytest.raises(SystemExit):
        commands.parser().parse_args(["demo", "--seed", str(2**64)])


def test_a_failure_is_two_sentences_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(commands.PREPARED, raising=False)
    assert commands.run(["demo", "--comfyui", str(tmp_path)]) == 1
    printed = capsys.readouterr().err
    assert "demo failed" in printed and "What to do:" in printed and "Traceback" not in printed
    assert commands.run(["serve", "--python", str(tmp_path / "python")]) == 1
    assert "there is no Python at" in capsys.readouterr().err


def test_the_report_tells_passes_and_seconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = {
        "passes": 28,
        "autoregressive_passes": 256,
        "seconds": 1.5,
        "promise": "same picture",
        "decoder": "D",
    }
    demo.report(
        Run(outputs={"4": {"jacobi_ar": [facts]}}, seconds=2.0), "red heart", "sjd", tmp_path / "x.png"
    )
    printed = capsys.readouterr().out
    for part in (
        "red heart",
        str(tmp_path / "x.png"),
        "28",
        "256",
        "9.1 times",
        "1.50",
        "2.00",
        "same picture",
    ):
        assert part in printed
    with pytest.raises(Problem, match="no pass counts"):
        demo.facts_of(Run())


def test_file_names_come_from_prompts() -> None:
    assert demo.slug("Red heart, éàü!") == "red-heart"
    assert demo.slug("") == "no-prompt"


def test_progress_is_a_line_a_tenth_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    progress = demo.ProgressLine("4")
    for value in range(257):
        progress("progress", {"node": "4", "value": value, "max": 256})
        progress("progress", {"node": "5", "value": 1, "max": 1})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 11 and lines[-1].endswith("256 of 256 tokens")


def test_a_named_chromium_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(browser.VARIABLE, "/somewhere/chrome")
    assert browser.find_chromium() == "/somewhere/chrome"


def test_the_end_of_a_log_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("\n".join(str(number) for number in range(40)), encoding="utf-8")
    assert last_lines(log, 2) == "  | 38\n  | 39"
    assert "could not be read" in last_lines(tmp_path / "none")
