"""Finds a Chromium for the browser tests. None is ever downloaded."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
)
VARIABLE = "JACOBI_AR_CHROMIUM"


def find_chromium() -> str | None:
    named = os.environ.get(VARIABLE)
    if named:
        return named
    on_path = next((found for name in NAMES if (found := shutil.which(name))), None)
    return on_path or next((place for place in PLACES if Path(place).is_file()), None)


def how_to_get_chromium() -> str:
    if sys.platform == "linux":
        return f"Install it (on Debian: apt-get install chromium) or set {VARIABLE} to one."
    return f"Install Chrome or Chromium, or set {VARIABLE} to one."
