"""Which addresses are public. A webhook calls no others unless the policy allows it (G29)."""

from __future__ import annotations

import ipaddress
from enum import Enum

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class _Reach(Enum):
    PUBLIC = "globally reachable"
    REFUSED = "of a network or a machine of somebody's own, of many machines, or of none"
    EMBEDS = "its last 32 bits are the IPv4 address that is called"


# IANA's IPv4 and IPv6 Special-Purpose Address Registries as of 2025-10-09: the blocks that are not
# globally reachable, and the blocks inside these that are. Also refused: multicast, deprecated
# blocks, former notations of IPv4 addresses, and addresses that IANA has not allocated (of IPv6
# all but 2000::/3). The longest block that holds an address decides.
BLOCKS: tuple[tuple[str, _Reach, str], ...] = (
    ("0.0.0.0/0", _Reach.PUBLIC, "IPv4"),
    ("0.0.0.0/8", _Reach.REFUSED, "this network"),
    ("10.0.0.0/8", _Reach.REFUSED, "private use"),
    ("100.64.0.0/10", _Reach.REFUSED, "shared address space of carriers"),
    ("127.0.0.0/8", _Reach.REFUSED, "loopback"),
    ("169.254.0.0/16", _Reach.REFUSED, "link local"),
    ("172.16.0.0/12", _Reach.REFUSED, "private use"),
    ("192.0.0.0/24", _Reach.REFUSED, "IETF protocol assignments"),
    ("192.0.0.9/32", _Reach.PUBLIC, "port control protocol, anycast"),
    ("192.0.0.10/32", _Reach.PUBLIC, "TURN, anycast"),
    ("192.0.2.0/24", _Reach.REFUSED, "documentation"),
    ("192.88.99.0/24", _Reach.REFUSED, "6to4 relays, anycast; deprecated"),
    ("192.168.0.0/16", _Reach.REFUSED, "private use"),
    ("198.18.0.0/15", _Reach.REFUSED, "benchmarks"),
    ("198.51.100.0/24", _Reach.REFUSED, "documentation"),
    ("203.0.113.0/24", _Reach.REFUSED, "documentation"),
    ("224.0.0.0/4", _Reach.REFUSED, "multicast"),
    ("240.0.0.0/4", _Reach.REFUSED, "reserved; limited broadcast"),
    ("::/0", _Reach.REFUSED, "given to nobody"),
    ("::/96", _Reach.REFUSED, "unspecified, loopback; IPv4-compatible, deprecated"),
    ("::ffff:0:0/96", _Reach.EMBEDS, "IPv4-mapped"),
    ("::ffff:0:0:0/96", _Reach.REFUSED, "IPv4-translated; deprecated"),
    ("64:ff9b::/96", _Reach.EMBEDS, "NAT64"),
    ("64:ff9b:1::/48", _Reach.REFUSED, "NAT64 of local use"),
    ("100::/64", _Reach.REFUSED, "discard only"),
    ("100:0:0:1::/64", _Reach.REFUSED, "dummy prefix"),
    ("2000::/3", _Reach.PUBLIC, "global unicast"),
    ("2001::/23", _Reach.REFUSED, "IETF protocol assignments; Teredo, which embeds IPv4"),
    ("2001:1::1/128", _Reach.PUBLIC, "port control protocol, anycast"),
    ("2001:1::2/128", _Reach.PUBLIC, "TURN, anycast"),
    ("2001:1::3/128", _Reach.PUBLIC, "DNS-SD service registration, anycast"),
    ("2001:2::/48", _Reach.REFUSED, "benchmarks"),
    ("2001:3::/32", _Reach.PUBLIC, "AMT"),
    ("2001:4:112::/48", _Reach.PUBLIC, "AS112"),
    ("2001:10::/28", _Reach.REFUSED, "ORCHID, deprecated"),
    ("2001:20::/28", _Reach.PUBLIC, "ORCHIDv2"),
    ("2001:30::/28", _Reach.PUBLIC, "remote ids of drones"),
    ("2001:db8::/32", _Reach.REFUSED, "documentation"),
    ("2002::/16", _Reach.REFUSED, "6to4, which embeds IPv4; deprecated"),
    ("3fff::/20", _Reach.REFUSED, "documentation"),
    ("5f00::/16", _Reach.REFUSED, "segment routing"),
    ("fc00::/7", _Reach.REFUSED, "unique local"),
    ("fe80::/10", _Reach.REFUSED, "link local"),
    ("fec0::/10", _Reach.REFUSED, "site local; deprecated"),
    ("ff00::/8", _Reach.REFUSED, "multicast"),
)
_LONGEST_FIRST = sorted(
    ((ipaddress.ip_network(block), reach) for block, reach, _ in BLOCKS),
    key=lambda row: row[0].prefixlen,
    reverse=True,
)


def public(address: str) -> bool:
    """Whether an address is globally reachable, and of one machine (no multicast)."""
    found = ipaddress.ip_address(address.partition("%")[0])
    match _reach(found):
        case _Reach.EMBEDS:
            return _reach(ipaddress.IPv4Address(int(found) & 0xFFFF_FFFF)) is _Reach.PUBLIC
        case reach:
            return reach is _Reach.PUBLIC


def _reach(address: Address) -> _Reach:
    return next(reach for network, reach in _LONGEST_FIRST if address in network)
