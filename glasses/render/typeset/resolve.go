package typeset

import (
	"slices"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
)

const maxBrackets = 63 // rule BD16

// weak resolves numbers, their separators and marks (W1 to W7).
func (v *leveller) weak(s *sequence) {
	previous, strong := s.before, s.before
	for _, i := range s.at {
		c := v.classes[i]
		switch {
		case c == bidi.NSM && (isInitiator(previous) || previous == bidi.PDI): // W1
			c = bidi.ON
		case c == bidi.NSM:
			c = previous
		case c == bidi.EN && strong == bidi.AL: // W2
			c = bidi.AN
		}
		if c == bidi.L || c == bidi.R || c == bidi.AL {
			strong = c
		}
		v.classes[i], previous = c, c
	}
	for k, i := range s.at { // W3, W4
		switch c := v.classes[i]; {
		case c == bidi.AL:
			v.classes[i] = bidi.R
		case (c == bidi.ES || c == bidi.CS) && k > 0 && k+1 < len(s.at):
			a, b := v.classes[s.at[k-1]], v.classes[s.at[k+1]]
			if a == b && (a == bidi.EN || a == bidi.AN && c == bidi.CS) {
				v.classes[i] = a
			}
		}
	}
	v.terminators(s)
	strong = s.before
	for _, i := range s.at { // W6, W7
		switch v.classes[i] {
		case bidi.L, bidi.R:
			strong = v.classes[i]
		case bidi.ES, bidi.ET, bidi.CS:
			v.classes[i] = bidi.ON
		case bidi.EN:
			if strong == bidi.L {
				v.classes[i] = bidi.L
			}
		}
	}
}

// terminators treats currency signs and similar characters as part of an adjacent number (W5).
func (v *leveller) terminators(s *sequence) {
	for k := 0; k < len(s.at); k++ {
		to := k
		for to < len(s.at) && v.classes[s.at[to]] == bidi.ET {
			to++
		}
		if k > 0 && v.classes[s.at[k-1]] == bidi.EN || to < len(s.at) && v.classes[s.at[to]] == bidi.EN {
			v.set(s.at[k:to], bidi.EN)
		}
		k = max(k, to-1)
	}
}

func (v *leveller) set(at []int, c bidi.Class) {
	for _, i := range at {
		v.classes[i] = c
	}
}

// brackets assigns the same direction to both brackets of a pair (N0).
func (v *leveller) brackets(s *sequence) {
	for _, p := range v.bracketPairs(s) {
		c := v.directionWithin(s, p)
		if c == bidi.ON {
			continue
		}
		for _, k := range p {
			v.classes[s.at[k]] = c
			for k++; k < len(s.at) && v.original[s.at[k]] == bidi.NSM; k++ {
				v.classes[s.at[k]] = c
			}
		}
	}
}

// directionWithin returns the direction of a pair of brackets, which is determined by the letters in and before it. It
// returns bidi.ON if the pair contains no letters.
func (v *leveller) directionWithin(s *sequence, pair [2]int) bidi.Class {
	found := bidi.ON
	for _, i := range s.at[pair[0]+1 : pair[1]] {
		switch c := v.strength(i); c {
		case s.direction():
			return c
		case bidi.L, bidi.R:
			found = c
		}
	}
	if found == bidi.ON {
		return bidi.ON
	}
	before := s.before
	for k := pair[0] - 1; k >= 0; k-- {
		if c := v.strength(s.at[k]); c != bidi.ON {
			before = c
			break
		}
	}
	if before == found {
		return found
	}
	return s.direction()
}

// strength returns bidi.L or bidi.R for a letter or number, and bidi.ON for other characters. Numbers count as right
// to left.
func (v *leveller) strength(i int) bidi.Class {
	switch v.classes[i] {
	case bidi.L:
		return bidi.L
	case bidi.R, bidi.EN, bidi.AN:
		return bidi.R
	}
	return bidi.ON
}

// bracketPairs returns the positions of paired brackets in a sequence, ordered by the first bracket (BD16).
func (v *leveller) bracketPairs(s *sequence) [][2]int {
	type bracket struct {
		closing rune
		k       int
	}
	var open []bracket
	var pairs [][2]int
	for k, i := range s.at {
		p, _ := bidi.LookupRune(v.text[i])
		if v.classes[i] != bidi.ON || !p.IsBracket() {
			continue
		}
		if p.IsOpeningBracket() {
			if len(open) == maxBrackets {
				return nil
			}
			open = append(open, bracket{closingBracket(v.text[i]), k})
			continue
		}
		closing := canonical(v.text[i])
		for j := len(open) - 1; j >= 0; j-- {
			if open[j].closing == closing {
				pairs = append(pairs, [2]int{open[j].k, k})
				open = open[:j]
				break
			}
		}
	}
	slices.SortFunc(pairs, func(a, b [2]int) int { return a[0] - b[0] })
	return pairs
}

// closingBracket returns the bracket that closes an opening one, in its canonical form.
func closingBracket(r rune) rune {
	closing, _ := utf8.DecodeRuneInString(bidi.ReverseString(string(r)))
	return canonical(closing)
}

// canonical returns the canonical equivalent of a bracket, which differs from the bracket in only two cases.
func canonical(r rune) rune {
	if r == '\u2329' || r == '\u232a' {
		return r - '\u2329' + '\u3008'
	}
	return r
}

// neutral assigns the direction of the surrounding text to spaces, punctuation and similar characters (N1, N2).
func (v *leveller) neutral(s *sequence) {
	before := s.before
	for k := 0; k < len(s.at); k++ {
		if c := v.strength(s.at[k]); c != bidi.ON {
			before = c
			continue
		}
		to := k
		for to < len(s.at) && v.strength(s.at[to]) == bidi.ON {
			to++
		}
		after := s.after
		if to < len(s.at) {
			after = v.strength(s.at[to])
		}
		c := s.direction()
		if before == after {
			c = before
		}
		v.set(s.at[k:to], c)
		k = to - 1
	}
}

// implicit raises the levels of letters and numbers whose direction differs from their embedding (I1, I2).
func (v *leveller) implicit(s *sequence) {
	for _, i := range s.at {
		switch c := v.classes[i]; {
		case c == s.direction():
		case c == bidi.L || c == bidi.R || s.level%2 == 1:
			v.levels[i]++
		default: // a number from left to right
			v.levels[i] += 2
		}
	}
}
