"""What commands show people: text of the screen's width."""
