"""What of kperfir is in a process: code for a child, which prints a JSON list of places."""

# Of Triton: everything that a module or one of its classes holds. Of Python: what decides on imports and errors.
FIND_TRACES = """
import json, sys

def ours(value):
    while value is not None:
        if (getattr(value, "__module__", None) or type(value).__module__ or "").startswith("kperfir"):
            return True
        value = getattr(value, "__wrapped__", None) or getattr(value, "func", None) or getattr(value, "fget", None)
    return False

def holders():
    knobs = sys.modules.get("triton.knobs")
    if knobs is not None:
        yield "triton.knobs.runtime", knobs.runtime
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "triton":
            yield name, module
            for key, value in list(vars(module).items()):
                if isinstance(value, type):
                    yield f"{name}.{key}", value

found = [name for name in sys.modules if name.split(".")[0] == "kperfir"]
found += [f"{where}.{key}" for where, held in holders() for key, value in list(vars(held).items()) if ours(value)]
found += [f"sys.{name}" for name in ("meta_path", "path_hooks") if any(map(ours, getattr(sys, name)))]
found += ["sys.excepthook"] if ours(sys.excepthook) else []
print(json.dumps(sorted(set(found))))
"""
