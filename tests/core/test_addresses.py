"""Which addresses are of the internet, block by block (G29)."""

from __future__ import annotations

import ipaddress

import pytest

from tidegate.engine.core.addresses import BLOCKS, public

# A block, whether its addresses are public, and those just before and after it.
IPV4 = """
0.0.0.0/8          no   -   yes
10.0.0.0/8         no   yes yes
100.64.0.0/10      no   yes yes
127.0.0.0/8        no   yes yes
169.254.0.0/16     no   yes yes
172.16.0.0/12      no   yes yes
192.0.0.0/24       no   yes yes
192.0.0.9/32       yes  no  yes
192.0.0.10/32      yes  yes no
192.0.2.0/24       no   yes yes
192.88.99.0/24     no   yes yes
192.168.0.0/16     no   yes yes
198.18.0.0/15      no   yes yes
198.51.100.0/24    no   yes yes
203.0.113.0/24     no   yes yes
224.0.0.0/4        no   yes no
240.0.0.0/4        no   no  -
"""
IPV6 = """
::/96              no   -   no
::ffff:0:0:0/96    no   no  no
64:ff9b:1::/48     no   no  no
100::/64           no   no  no
100:0:0:1::/64     no   no  no
2000::/3           yes  no  no
2001::/23          no   yes yes
2001:1::1/128      yes  no  yes
2001:1::2/128      yes  yes yes
2001:1::3/128      yes  yes no
2001:2::/48        no   no  no
2001:3::/32        yes  no  no
2001:4:112::/48    yes  no  no
2001:10::/28       no   no  yes
2001:20::/28       yes  no  yes
2001:30::/28       yes  yes no
2001:db8::/32      no   yes yes
2002::/16          no   yes yes
3fff::/20          no   yes yes
5f00::/16          no   no  no
fc00::/7           no   no  no
fe80::/10          no   no  no
fec0::/10          no   no  no
ff00::/8           no   no  -
"""
EMBEDDING = ("::ffff:0:0/96", "64:ff9b::/96")
ROWS = [line.split() for line in (IPV4 + IPV6).split("\n") if line]
YES = {"yes": True, "no": False}


@pytest.mark.parametrize(("block", "inside", "before", "after"), ROWS)
def test_g29_a_block_begins_and_ends_where_the_registry_says(
    block: str, inside: str, before: str, after: str
) -> None:
    network = ipaddress.ip_network(block)
    assert public(str(network[0])) is YES[inside]
    assert public(str(network[-1])) is YES[inside]
    for neighbour, said in (
        (int(network[0]) - 1, before),
        (int(network[-1]) + 1, after),
    ):
        if said != "-":
            assert public(str(type(network[0])(neighbour))) is YES[said]
    if block in ("192.0.0.0/24", "2001::/23"):  # in which the others are looked at on their own
        return
    for n in range(1, 16):
        middle = network[network.num_addresses * n // 16]
        assert public(str(middle)) is YES[inside]


@pytest.mark.parametrize("prefix", ["::ffff:", "64:ff9b::"])
@pytest.mark.parametrize(("block", "inside", "before", "after"), [r for r in ROWS if "." in r[0]])
def test_g29_an_address_that_holds_one_of_ipv4_is_judged_by_it(
    prefix: str, block: str, inside: str, before: str, after: str
) -> None:
    network = ipaddress.IPv4Network(block)
    for place, said in (
        (int(network[0]), inside),
        (int(network[-1]), inside),
        (int(network[0]) - 1, before),
        (int(network[-1]) + 1, after),
    ):
        if said != "-":
            assert public(f"{prefix}{ipaddress.IPv4Address(place)}") is YES[said]


def test_every_block_is_looked_at() -> None:
    blocks = {block for block, _, _ in BLOCKS} - {"0.0.0.0/0", "::/0"}
    assert blocks == {*(row[0] for row in ROWS), *EMBEDDING}
    assert len(BLOCKS) == len(blocks) + 2


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.7", "172.16.0.1", "192.168.1.1", "127.0.0.1", "169.254.169.254", "0.0.0.0",
        "100.64.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.88.99.1", "::1", "::",
        "fe80::1%eth0", "fc00::1", "fec0::1", "ff02::1", "::ffff:10.0.0.7", "::127.0.0.1",
        "::ffff:0:127.0.0.1", "2002:7f00:1::", "64:ff9b::10.0.0.7", "64:ff9b:1::7f00:1",
        "2001:0:7f00:1::", "5f00::1", "4000::1", "::fffe:8.8.8.8", "64:ff9b::1:8.8.8.8",
    ],
)  # fmt: skip
def test_g29_addresses_that_are_not_of_the_internet(address: str) -> None:
    assert not public(address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::93.184.216.34", "2620:4f:8000::1"]
)
def test_g29_addresses_of_the_internet(address: str) -> None:
    assert public(address)
