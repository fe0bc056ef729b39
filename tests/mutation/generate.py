#!/usr/bin/env python3
"""Writes mutants.txt: small mistakes in the clauses and the regions of the two mean expansions.

    tests/mutation/generate.py         after every change of the two sources

A line per mutant, tab-separated: name, file, offset in the file, what stands there, what a mutant
says instead (a newline is written \\n). A name is scope:operator:number, numbered per scope and
operator. Comments, strings and #includes are not mutated.
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCOPES = {
    "lowering/expand_mean.cc": [
        "clause2_rank", "clause3_axes", "clause4_sizes", "clause5_dtype", "judge",
        "reachable_means", "refuse_offenders", "emit", "run", "find_mean",
    ],
    "lowering/expand_mean_derivative.cc": [
        "gather", "clause1_divided_by_finite_literal", "clause2_broadcast_of_the_program",
        "clause3_static_float_matrix", "clause4_single_element_source",
        "clause5_divisor_is_the_count", "clause6_quotient_type", "clause7_only_use",
        "first_failure", "is_divide", "reciprocal", "emit", "run",
    ],
}  # fmt: skip

# operator, pattern, replacements
TOKENS = [
    ("equal to at most", r" == ", [" <= ", " >= "]),
    ("less to at most", r" < ", [" <= "]),
    ("rows for columns", r"shape(\(\))?\[0\]", [r"shape\1[1]"]),
    ("rows for columns", r"shape(\(\))?\[1\]", [r"shape\1[0]"]),
    ("rows for columns", r"\{([^{},;]+), 1\}", [r"{1, \1}"]),
    ("rows for columns", r"\{1, ([^{},;]+)\}", [r"{\1, 1}"]),
    ("rows for columns", r"matmul\((\w+), ([\w.]+(?:\([^()]*\))?)\)", [r"matmul(\2, \1)"]),
    ("off by one", r", count\)", [", count + 1)", ", count - 1)"]),
    ("sum for product", r" \* ", [" + "]),
    ("product for quotient", r" / ", [" * "]),
    ("first use for only use", r"uses\.count\(\*facts\.b\)", ["1"]),
    ("first use for only use", r"facts\.b_uses == 1", ["facts.b_uses >= 1"]),
    ("integer for float compare", r"\*facts\.d == Literal::from_int\(facts\.b_type\.dtype, count\)",
     ["static_cast<std::int64_t>(facts.d->as_double()) == count"]),
    ("integer for float compare", r"reciprocal\.as_double\(\) == 0",
     ["static_cast<std::int64_t>(reciprocal.as_double()) == 0"]),
    ("other dtype", r"DType::f32\b", ["DType::f16"]),
    ("other dtype", r"DType::f64\b", ["DType::bf16"]),
    ("negate", r"(?<=return )!", [""]),
    ("negate", r"(?<=return )std::holds_alternative", ["!std::holds_alternative"]),
]  # fmt: skip


def masked(text):
    """The text with comments and the insides of strings blanked, every offset kept."""
    blank = lambda found: re.sub(r"[^\n]", "~", found.group())
    return re.sub(r'//[^\n]*|(?<=")[^"\n]+(?=")', blank, re.sub(r'"[^"\n]*"', blank, text))


def closing(text, start):
    """The offset of the bracket that closes the one at start."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] in "({[") - (text[i] in ")}]")
        if depth == 0:
            return i
    raise ValueError("unbalanced")


def split(text, word):
    """Where the parts between top-level `word`s lie, as pairs of offsets."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "({[") - (letter in ")}]")
        if depth == 0 and text.startswith(word, i):
            parts.append((start, i))
            start = i + len(word)
    return [*parts, (start, len(text))]


def condition_mutants(text, begin, end):
    """Of a condition: its negation, never, each operand dropped, and the other connective."""
    whole = text[begin:end]
    if ";" not in whole and not whole.startswith(("const ", "auto ")):
        yield "negate", begin, whole, f"!({whole})"
        yield "never", begin, whole, "false"
    elif not whole.count(";"):
        name = re.search(r"(\w+) =", whole).group(1)
        yield "negate", begin, whole, f"{whole}; !{name}"
    for word, other in (("&&", "||"), ("||", "&&")):
        parts = split(whole, f" {word} ")
        if len(parts) < 2:
            parts = split(whole, f" {word}\n")
        if len(parts) < 2:
            continue
        spaced = re.sub(rf" {re.escape(word)}\s+", f" {word} ", whole)
        operands = [spaced[a:b] for a, b in split(spaced, f" {word} ")]
        for k in range(len(operands)):
            rest = operands[:k] + operands[k + 1 :]
            yield "drop operand", begin, whole, f" {word} ".join(rest)
        for k in range(1, len(operands)):
            left, right = f" {word} ".join(operands[:k]), f" {word} ".join(operands[k:])
            yield "other connective", begin, whole, f"({left}) {other} ({right})"


def scope_mutants(text, mask, begin, end, name):
    """All mutants of one function, whose body lies in [begin, end)."""
    if name.startswith("clause"):
        yield "drop", begin + 1, "", "\n  return std::nullopt;"
    for found in re.finditer(r"\bif \(", mask[begin:end]):
        start = begin + found.end()
        yield from condition_mutants(text, start, closing(mask, start - 1))
    for found in re.finditer(r"const bool \w+ =\s+([^;]*(?:&&|\|\|)[^;]*);", mask[begin:end]):
        if "{" not in found.group(1):
            yield from condition_mutants(text, begin + found.start(1), begin + found.end(1))
    for found in re.finditer(r"\{(clause\w+,\s+)+clause\w+\}", mask[begin:end]):
        clauses = re.split(r",\s+", found.group()[1:-1])
        for k in range(len(clauses) - 1):
            swapped = clauses[:k] + [clauses[k + 1], clauses[k]] + clauses[k + 2 :]
            old = text[begin + found.start() : begin + found.end()]
            yield "other order", begin + found.start(), old, "{" + ", ".join(swapped) + "}"
    for operator, pattern, replacements in TOKENS:
        for found in re.finditer(pattern, mask[begin:end]):
            old = text[begin + found.start() : begin + found.end()]
            for replacement in replacements:
                yield operator, begin + found.start(), old, found.expand(replacement)
    for found in re.finditer(r"(?<![\w.])\d+(?![\w.])", mask[begin:end]):
        reported = mask[: begin + found.start()].endswith("Offence{")  # one wrong number will do
        for step in (1,) if reported else (1, -1):
            number = int(found.group()) + step
            if number >= 0:
                yield "off by one", begin + found.start(), found.group(), str(number)


def main():
    lines = []
    for file, names in SCOPES.items():
        text = (ROOT / file).read_text()
        assert text.isascii(), file  # an offset counts characters here, bytes in run.sh
        mask = masked(text)
        for name in names:
            (head,) = re.finditer(rf"^[A-Z][^\n(]*\b{name}\(|^\w[^\n(=]* {name}\(", mask, re.M)
            begin = mask.index("{", closing(mask, head.end() - 1))
            seen, numbers = {text}, {}
            for operator, offset, old, new in scope_mutants(
                text, mask, begin, closing(mask, begin) + 1, name
            ):
                mutated = text[:offset] + new + text[offset + len(old) :]
                if mutated in seen:
                    continue
                seen.add(mutated)
                numbers[operator] = numbers.get(operator, 0) + 1
                prefix = pathlib.Path(file).stem
                label = f"{prefix}/{name}:{operator.replace(' ', '_')}:{numbers[operator]}"
                fields = [label, file, str(offset), old, new]
                assert not any("\t" in field or "\\" in field for field in fields), label
                lines.append("\t".join(field.replace("\n", "\\n") for field in fields))
    (ROOT / "tests/mutation/mutants.txt").write_text("\n".join(lines) + "\n")
    print(f"mutants.txt: {len(lines)} mutants")


main()
