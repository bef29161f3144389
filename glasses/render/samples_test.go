package render

// Samples are words of both directions and of each kind of script: with marks above and below, joined letters,
// reordered vowels, no spaces, and grapheme clusters of several characters.
var Samples = []string{"word ", "longer words\n", "Éf", "日本語、", "مرحبا 12 ", "שָׁלוֹם ", "ไทยศักดิ์ศรี", "ที่น้ำ",
	"नेत्री ", "দ্বিতীয় ", "கொள்ளல் ", "ế̃ ậ ", "👩‍👩‍👧🇮🇸", "a\u2067ب(1)\u2069 "}

// Directions are the values of a node's direction.
var Directions = []string{"", "", "ltr", "rtl", "auto"}
