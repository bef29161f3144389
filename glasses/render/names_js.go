package render

// nameOf returns "": a page names characters by code point only, because the table of names would add a tenth to the
// program that it loads.
func nameOf(rune) string { return "" }
