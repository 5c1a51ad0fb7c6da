"""Manifests as TypeScript programs, for `scripts/lint manifests`: they compile only if every field exists in
kubernetes-types and has the right type, and none is missing.

usage: manifest_types.py FILE.yaml... > FILE.ts
"""

import json
import pathlib
import sys

import yaml

# The module of each apiVersion.
MODULES = {"v1": "core/v1", "apps/v1": "apps/v1", "rbac.authorization.k8s.io/v1": "rbac/v1"}
# Kinds of the Prometheus operator: no package has types for them, so tests/deploy checks them.
UNTYPED = {("monitoring.coreos.com/v1", "PodMonitor"), ("monitoring.coreos.com/v1", "PrometheusRule")}


def program(documents):
    """`documents` are pairs (source, parsed document)."""
    imports, constants = set(), []
    for where, document in documents:
        version, kind = document["apiVersion"], document["kind"]
        if (version, kind) in UNTYPED:
            continue
        if version not in MODULES:
            raise SystemExit(f"{where}: manifest_types.py has no module for {version}")
        imports.add(f'import type {{ {kind} }} from "kubernetes-types/{MODULES[version]}";')
        text = json.dumps(document, indent=1)
        constants.append(f"// {where}\nexport const object{len(constants)}: {kind} = {text};")
    return "\n".join([*sorted(imports), *constants])


def main():
    documents = [(pathlib.Path(name).name, document) for name in sys.argv[1:]
                 for document in yaml.safe_load_all(pathlib.Path(name).read_text()) if document]
    print(program(documents))


if __name__ == "__main__":
    main()
