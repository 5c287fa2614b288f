// Find AR Image Models shows its list in a box that fills the node: the page's own place for a run's text ends
// after twelve lines.
import { app } from "../../scripts/app.js";

function boxOf(node) {
    const found = node.widgets?.find((widget) => widget.name === "shown");
    if (found) return found.element;
    const box = document.createElement("textarea");
    box.className = "comfy-multiline-input";
    box.readOnly = true;
    // What is shown is no setting: it stays out of saved workflows and of what is queued. The type is our own:
    // for those that "Nodes 2.0" knows it draws a field of its own in place of the box.
    node.addDOMWidget("shown", "JACOBI_AR_LIST", box, { serialize: false }).serialize = false;
    return box;
}

app.registerExtension({
    name: "JacobiAR.listText",
    beforeRegisterNodeDef(nodeType, nodeData) {
        if (nodeData.name !== "JacobiARListModels") return;
        const executed = nodeType.prototype.onExecuted;
        nodeType.prototype.onExecuted = function (output) {
            executed?.apply(this, arguments);
            const [width, height] = this.size;
            boxOf(this).value = (output.text ?? []).join("\n");
            this.setSize([width, height]); // a new widget makes the page shrink the node to its least size
            app.graph.setDirtyCanvas(true);
        };
    },
});
