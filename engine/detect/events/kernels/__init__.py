"""The compiled loops of the event graph's operators, over columns of numbers.

columns         the tables and the constants that the others share
instance_order  which of two instances is the greater
entries         copying and merging the occurrences that instances are made of
joins           `;` and `-`: as-of joins
openers         `not`, `A`, `A*`, `P`, `P*`: which opener a terminator finds
contents        `A*`, `P*`: what closed windows hold
conjoin         `and`, `all`, `any`
unions          `any(m, a*)`, `every`, `a[i]`, and unions of instances
ties            which of simultaneous occurrences counts
"""
