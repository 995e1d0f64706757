"""Plain data into specs, and what msgspec's complaints mean for whoever wrote that data.

`convert` decodes dictionaries, lists, texts and numbers (a TOML document, or an argument given in
Python) into an annotated type. Whatever does not fit becomes one `SpecError`: the dotted path, the
offending value, and what the annotation there admits, in words. An error that a spec raises about
itself ("Ecn.kmin") gets the path of the place at which the spec stands ("switch.ecn.kmin").

The functions that look into annotations are used by the writer and the schema too; they know
unions, variable tuples, literals, quantities and specs told apart by `kind`, and nothing else.
"""

from __future__ import annotations

import numbers
import operator
import re
import types
import typing
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Literal

import msgspec

from fabric.errors import MISSING, SpecError
from fabric.units import Quantity, QuantityError

__all__ = [
    "chosen_class",
    "convert",
    "did_you_mean",
    "element_type",
    "field_types",
    "joined",
    "member_type",
    "missing_field",
    "tag_of",
]

_PLACE = re.compile(r"(?P<what>.*?)(?: - at `(?:key in )?\$(?P<place>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_WORDS: dict[Any, str] = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}


def convert(value: Any, annotation: Any, *, path: str = "") -> Any:
    """Turn plain data into what `annotation` says.

    Parameters
    ----------
    value : object
        Strings, numbers (NumPy's too), lists, dictionaries; specs pass as they are.
    annotation : type
        A spec, or the type of a field of one.
    path : str
        Where `value` stands, for error messages.

    Returns
    -------
    object
        A value of the annotated type.

    Raises
    ------
    SpecError
        Naming the first part of `value` that does not fit, its path and what would.

    Examples
    --------
    >>> from fabric.units import Size
    >>> convert(["4KB", 100], tuple[Size, ...])
    (Size("4KB"), Size("100B"))
    """
    if type(value) is annotation or value is msgspec.UNSET:
        return value
    value = _with_default_kinds(value, annotation)
    try:
        return msgspec.convert(value, annotation, dec_hook=_decode_quantity)
    except msgspec.ValidationError as error:
        plain = _plain_numbers(value)
        if plain is not value:
            return convert(plain, annotation, path=path)
        raise _explain(error, value, annotation, path) from None
    except UnicodeEncodeError as error:
        raise SpecError(path, error.object, "text that UTF-8 can hold") from None


def _with_default_kinds(value: Any, annotation: Any) -> Any:
    """Add `kind` to tables that leave it out where one of the specs is what that means."""
    if isinstance(value, list):
        inner = element_type(annotation)
        return value if inner is None else [_with_default_kinds(each, inner) for each in value]
    if not isinstance(value, dict):
        return value
    if "kind" not in value:
        kinds = [cls for cls in _spec_classes(annotation) if getattr(cls, "IS_DEFAULT_KIND", False)]
        value = {"kind": tag_of(kinds[0]), **value} if kinds else value
    cls = chosen_class(annotation, value)
    types = {} if cls is None else field_types(cls)
    return {
        name: _with_default_kinds(each, types[name]) if name in types else each
        for name, each in value.items()
    }


def joined(path: str, field: str) -> str:
    """Append a field, or an index in brackets, to a dotted path."""
    if not path or not field or field.startswith("["):
        return path + field
    return f"{path}.{field}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint naming the known word closest to `word`, or nothing."""
    close = get_close_matches(word, list(known), n=1)
    return f'; did you mean "{close[0]}"?' if close else ""


@cache
def field_types(cls: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the evaluated annotation of every field of a spec, in order."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {name: hints[name] for name in cls.__struct_fields__}


def tag_of(cls: type[msgspec.Struct]) -> str | None:
    """Return the `kind` that selects a spec; None if nothing needs to."""
    return typing.cast("str | None", cls.__struct_config__.tag)


def chosen_class(annotation: Any, value: Any) -> type[msgspec.Struct] | None:
    """Return the spec that an annotation admits; of several, the one that `value["kind"]` selects."""
    classes = _spec_classes(annotation)
    if len(classes) == 1:
        return classes[0]
    kind = value.get("kind") if isinstance(value, dict) else None
    return next((cls for cls in classes if tag_of(cls) == kind), None)


def member_type(annotation: Any, value: Any, name: str) -> Any:
    """Return the annotation of the field `name` of `value`; None if there is no such field."""
    classes = _spec_classes(annotation)
    if name == "kind" and classes and tag_of(classes[0]) is not None:
        return Literal.__getitem__(tuple(tag_of(cls) for cls in classes))
    cls = chosen_class(annotation, value)
    return None if cls is None else field_types(cls).get(name)


def element_type(annotation: Any) -> Any:
    """Return what a list may hold; None if `annotation` admits no list."""
    for option in _options(annotation):
        if typing.get_origin(option) is tuple:
            return typing.get_args(option)[0]
    return None


def missing_field(name: str, annotation: Any, value: Any, *, path: str = "") -> SpecError:
    """Return the error that `value`, at `path`, lacks the field `name`."""
    return SpecError(joined(path, name), MISSING, _describe(member_type(annotation, value, name)))


def _decode_quantity(kind: type, value: Any) -> Any:
    return kind(value)


def _plain_numbers(value: Any) -> Any:
    """The same data with numbers of other libraries (NumPy's) as Python's; `value` if it has none."""
    if isinstance(value, dict):
        plain: Any = {key: _plain_numbers(each) for key, each in value.items()}
        return plain if any(plain[key] is not each for key, each in value.items()) else value
    if isinstance(value, list | tuple):
        plain = [_plain_numbers(each) for each in value]
        return plain if any(one is not each for one, each in zip(plain, value, strict=True)) else value
    if type(value) is float or isinstance(value, int):
        return value
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return float(value)
    try:
        return operator.index(value)
    except TypeError:
        return value


def _options(annotation: Any) -> tuple[Any, ...]:
    if typing.get_origin(annotation) is Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def _is_spec(option: Any) -> bool:
    return isinstance(option, type) and issubclass(option, msgspec.Struct)


def _spec_classes(annotation: Any) -> tuple[type[msgspec.Struct], ...]:
    return tuple(option for option in _options(annotation) if _is_spec(option))


def _explain(error: msgspec.ValidationError, root: Any, annotation: Any, path: str) -> SpecError:
    """Translate a complaint of msgspec's about `root`."""
    matched = _PLACE.fullmatch(str(error))
    assert matched is not None
    what, place = matched["what"], matched["place"] or ""
    where = joined(path, place.removeprefix("."))
    value, expected = _look_up(root, annotation, place)
    cause = error.__cause__
    if isinstance(cause, QuantityError):
        return SpecError(where, cause.value, cause.allowed)
    if isinstance(cause, SpecError):
        cls = chosen_class(expected, value)
        inside = cause.path.removeprefix(f"{cls.__name__}." if cls else "")
        return SpecError(joined(where, inside), cause.value, cause.allowed)
    if found := re.fullmatch(r"Object missing required field `(.*)`", what):
        return missing_field(found[1], expected, value, path=where)
    if found := re.fullmatch(r"Object contains unknown field `(.*)`", what, re.DOTALL):
        return _unknown_key(joined(where, found[1]), found[1], expected, value)
    return SpecError(where, value, _describe(expected) + _hint(value, expected, where))


def _look_up(value: Any, annotation: Any, place: str) -> tuple[Any, Any]:
    """Follow a path of msgspec's (".switch.classes[0]") through data and annotations alike."""
    for name, index in _STEP.findall(place):
        if name:
            annotation = member_type(annotation, value, name)
            value = value.get(name) if isinstance(value, dict) else getattr(value, name, None)
        else:
            annotation = element_type(annotation)
            value = value[int(index)] if index.isdigit() else None
    return value, annotation


def _unknown_key(where: str, key: str, annotation: Any, value: Any) -> SpecError:
    cls = chosen_class(annotation, value)
    assert cls is not None
    known = [*(["kind"] if tag_of(cls) else []), *field_types(cls)]
    keys = f"one of the keys {', '.join(known)}" if known else "no key here"
    return SpecError(where, key, keys + did_you_mean(key, known))


def _hint(value: Any, annotation: Any, where: str) -> str:
    if typing.get_origin(annotation) is Literal and isinstance(value, str):
        return did_you_mean(value, typing.get_args(annotation))
    if isinstance(value, dict) and _spec_classes(element_type(annotation)):
        return f" (in TOML: [[{where}]])"
    return ""


def _describe(annotation: Any) -> str:
    """Say in words what an annotation admits."""
    if typing.get_origin(annotation) is Annotated:
        return str(typing.get_args(annotation)[1].description)
    options = [option for option in _options(annotation) if option is not type(None)]
    kinds = [tag_of(option) for option in options if _is_spec(option)]
    if len(kinds) > 1:
        return "a table with kind = " + " or ".join(f'"{kind}"' for kind in kinds)
    return " or ".join(_describe_one(option) for option in options)


def _describe_one(option: Any) -> str:
    if typing.get_origin(option) is Literal:
        return "one of " + ", ".join(f'"{choice}"' for choice in typing.get_args(option))
    if typing.get_origin(option) is dict:
        return "a table"
    if typing.get_origin(option) is tuple:
        return f"a list, each element {_describe(typing.get_args(option)[0])}"
    if _is_spec(option):
        return f"a table with the keys {', '.join(field_types(option))}"
    if isinstance(option, type) and issubclass(option, Quantity):
        return option.describe()
    return _WORDS.get(option, str(option))
