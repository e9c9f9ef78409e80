"""One file per operator: Shape (the fields: what the rule wrote), Carry (what outlives a step, in
`slots` slots) and Step (a pure function of operands and carry)."""
