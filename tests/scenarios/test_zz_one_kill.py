from scenarios.test_killed import *
from scenarios.conftest import story
import pytest
@pytest.mark.timeout(300)
def test_x(chronicle, state_directory, undisturbed):
    reference, writes = undisturbed
    print("WRITES", writes)
    for last in (112,113,114,115,116,117,118,119,120,121):
        anew(chronicle, state_directory)
        e = resumed_after(chronicle, last)
        print(last, e == reference, [(n, getattr(e,n), getattr(reference,n)) for n in ("files","requests","cost","promoted","delivery") if getattr(e,n)!=getattr(reference,n)])
        print([x for x in e.said if x not in reference.said], len(e.said), len(reference.said))
        with chronicle.shop() as shop:
            (row,) = shop.store.runs.list(shop.workspace)
            for ev in list(shop.store.events.read(shop.workspace, run=row.id))[-22:]: print(ev["kind"], str(ev["body"])[:150])
