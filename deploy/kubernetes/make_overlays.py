"""Makes the overlays of deploy/kubernetes from base/, or checks that they are current.

usage: make_overlays.py [--check]

An overlay is complete in itself, because no field includes another folder, or patches an object, for both kubectl 1.20
and a recent one: `bases` and `patchesStrategicMerge` are deprecated today, and their successors are unknown to 1.20.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OVERLAYS = {
    "soft": "Nodes without a card: everything works except the network. For evaluation, and for tests of workloads.",
    "verbs": "Nodes with cards. The daemon needs the cards' network, and their files below /dev/infiniband.",
    "verbs-fr": "Nodes with cards and the kernel module rnicd_fr, which makes fast registrations.",
}
# Have parts that are for some overlays only.
SETS = ("daemonset.yaml", "device-plugin.yaml")
COPIES = ("namespace.yaml", "rbac.yaml", "rnicd.flags", "device-plugin.flags", "policy.textproto")
KUSTOMIZATION = """# {purpose}
# Made by make_overlays.py, like the other files here; edit them in your copy.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: rnicd
resources:
  - namespace.yaml
  - rbac.yaml
  - daemonset.yaml
  - device-plugin.yaml
# The name gets a hash of the content as suffix, so that a changed flag or policy is rolled out like a new image.
configMapGenerator:
  - name: rnicd
    files:
      - rnicd.flags
      - device-plugin.flags
      - policy.textproto
# Where your nodes find the image:
# images:
#   - name: rnicd
#     newName: registry.example.org/rnicd
"""


def parts_for(overlay, text):
    """The lines of a file of SETS for an overlay. Raises ValueError for an unknown or nested part."""
    kept, part = [], None
    for line in text.splitlines()[1:]:
        word = line.strip()
        if word.startswith("#if "):
            if part is not None or not set(word.split()[1:]) <= set(OVERLAYS):
                raise ValueError(f"base: {word}")
            part = word.split()[1:]
        elif word == "#end":
            part = None
        elif part is None or overlay in part:
            kept.append(line)
    return "\n".join(kept) + "\n"


def files_of(overlay):
    """{name: text} of an overlay."""
    base = HERE / "base"
    files = {name: (base / name).read_text() for name in COPIES}
    files.update((name, parts_for(overlay, (base / name).read_text())) for name in SETS)
    files["kustomization.yaml"] = KUSTOMIZATION.format(purpose=OVERLAYS[overlay])
    return files


def main():
    stale = []
    for overlay in OVERLAYS:
        for name, text in files_of(overlay).items():
            path = HERE / "overlays" / overlay / name
            if path.exists() and path.read_text() == text:
                continue
            stale.append(str(path.relative_to(HERE)))
            if "--check" not in sys.argv:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    print("\n".join(stale) or "the overlays are current")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
