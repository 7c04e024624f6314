"""The process that tries a regular expression on texts. It runs alone, so that an expression that never ends can be
stopped by ending the process; Python cannot stop one in a thread."""

import json
import re
import sys
import warnings


def main() -> None:
    """Answers each line of input, a JSON text, with the JSON numbers of the lines that match."""
    warnings.simplefilter("ignore")
    order = json.loads(sys.stdin.readline())
    expression = re.compile(order["pattern"], re.IGNORECASE if order["ignore_case"] else 0)
    for request in sys.stdin:
        lines = json.loads(request).split("\n")
        found = [number for number, line in enumerate(lines, 1) if expression.search(line)]
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
