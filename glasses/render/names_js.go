package render

// nameOf returns "". A page identifies characters by code point only, because the table of names would make the program
// that it loads larger by a tenth.
func nameOf(rune) string { return "" }
