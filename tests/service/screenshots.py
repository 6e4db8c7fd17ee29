"""Pictures of the dashboard for the documentation: `python -m tests.service.screenshots [FOLDER]`.

A study of the direct arylation table after twelve plates of eight, four more being measured, on a desk by day and on a
phone by night.
"""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

from alexp.datasets import direct_arylation
from tests.service.browsing import PHONE, browser, page_of, why_not
from tests.service.serving import client, create, serving

DESK = {"width": 1180, "height": 1420}
NAME = "direct arylation"


MODELS = {
    "ligand": ["ligand"],
    "base + solvent": ["base", "solvent"],
    "temperature + concentration": ["temperature", "concentration"],
    "everything": ["ligand", "base", "solvent", "temperature", "concentration"],
}


def prepare(http):
    """A study in the middle of its work."""
    table = direct_arylation()
    columns = {str(name): values.tolist() for name, values in table.candidates.items()}
    study = create(http, NAME, {"kind": "table", "columns": columns, "models": MODELS})
    for _ in range(12):
        trials = study.post("ask", n=8)["trials"]
        study.post("tell", results=[{"trial": t["id"], "reward": float(table.rewards[t["index"]])} for t in trials])
    study.post("ask", n=4, lease=8 * 3600, worker="Ada, bench 2")


def take(page, path):
    """Write what is on the screen, in few enough colours to be small."""
    picture = Image.open(io.BytesIO(page.screenshot()))
    picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size // 1000} kB")


def main(folder):
    """Take all pictures."""
    if why_not():
        sys.exit(why_not())
    with tempfile.TemporaryDirectory() as place:
        storage = f"sqlite:///{place}/studies.db"
        with serving(storage) as (address, _), client(address) as http, browser() as running:
            prepare(http)
            for name, size, scheme in (("dashboard", DESK, "light"), ("dashboard-phone", PHONE, "dark")):
                with page_of(running, size, scheme, device_scale_factor=1.5 if size is PHONE else 1.0) as page:
                    page.goto(f"{address}/#/study/{NAME}")
                    page.locator("[data-plot=plausible] .main-svg").first.wait_for()
                    page.get_by_text("Live", exact=True).wait_for()
                    take(page, folder / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2] / "docs" / "figures")
