package typeset

import "golang.org/x/text/unicode/bidi"

const maxLevel = 125 // rule BD2

// leveller computes the embedding levels of a paragraph (Unicode Standard Annex 9). It reuses its buffers.
type leveller struct {
	text     []rune
	original []bidi.Class // from the Unicode Character Database
	classes  []bidi.Class // as changed by the rules
	levels   []uint8
	partner  []int // of an isolate initiator and its PDI (BD9); -1 if there is none
	base     uint8
}

// find returns the level of each character of a paragraph, as if the paragraph were one line. base is the level of the
// paragraph, 0 or 1. The result is valid until the next call.
func (v *leveller) find(text []rune, base uint8) []uint8 {
	v.text, v.base = text, base
	v.original, v.levels, v.partner = v.original[:0], v.levels[:0], v.partner[:0]
	for _, r := range text {
		v.original = append(v.original, classOf(r))
		v.levels = append(v.levels, base)
		v.partner = append(v.partner, -1)
	}
	v.classes = append(v.classes[:0], v.original...)
	v.matchIsolates()
	v.explicit()
	for _, s := range v.sequences() {
		v.weak(s)
		v.brackets(s)
		v.neutral(s)
		v.implicit(s)
	}
	v.endings()
	return v.levels
}

// matchIsolates finds the PDI of each isolate initiator (BD9).
func (v *leveller) matchIsolates() {
	var open []int
	for i, c := range v.original {
		switch {
		case isInitiator(c):
			open = append(open, i)
		case c == bidi.PDI && len(open) > 0:
			last := len(open) - 1
			v.partner[i], v.partner[open[last]] = open[last], i
			open = open[:last]
		}
	}
}

func isInitiator(c bidi.Class) bool { return c == bidi.LRI || c == bidi.RLI || c == bidi.FSI }

// embedding is an entry of the stack of rule X1.
type embedding struct {
	level    uint8
	override bidi.Class // bidi.ON for none
	isolate  bool
}

// explicit applies the embeddings, overrides and isolates (X1 to X8). Levels and classes of characters that rule X9
// removes are set later.
func (v *leveller) explicit() {
	stack := []embedding{{v.base, bidi.ON, false}}
	isolates, tooManyIsolates, tooManyEmbeddings := 0, 0, 0
	for i, c := range v.original {
		top := stack[len(stack)-1]
		switch c {
		case bidi.RLE, bidi.LRE, bidi.RLO, bidi.LRO:
			level, override := next(top.level, c == bidi.RLE || c == bidi.RLO), bidi.ON
			switch c {
			case bidi.RLO:
				override = bidi.R
			case bidi.LRO:
				override = bidi.L
			}
			if level <= maxLevel && tooManyIsolates == 0 && tooManyEmbeddings == 0 {
				stack = append(stack, embedding{level, override, false})
			} else if tooManyIsolates == 0 {
				tooManyEmbeddings++
			}
		case bidi.RLI, bidi.LRI, bidi.FSI:
			v.put(i, top)
			if tooManyIsolates > 0 || tooManyEmbeddings > 0 {
				tooManyIsolates++ // without reading its text, so that deep nesting stays cheap
				continue
			}
			level := next(top.level, c == bidi.RLI || c == bidi.FSI && v.startsRTL(i))
			if level > maxLevel {
				tooManyIsolates++
				continue
			}
			isolates++
			stack = append(stack, embedding{level, bidi.ON, true})
		case bidi.PDI:
			switch {
			case tooManyIsolates > 0:
				tooManyIsolates--
			case isolates > 0:
				tooManyEmbeddings = 0
				for !stack[len(stack)-1].isolate {
					stack = stack[:len(stack)-1]
				}
				stack = stack[:len(stack)-1]
				isolates--
			}
			v.put(i, stack[len(stack)-1])
		case bidi.PDF:
			switch {
			case tooManyIsolates > 0:
			case tooManyEmbeddings > 0:
				tooManyEmbeddings--
			case !top.isolate && len(stack) > 1:
				stack = stack[:len(stack)-1]
			}
		case bidi.B, bidi.BN:
		default:
			v.put(i, top)
		}
	}
}

// put sets the level of character i to the level of e. If e is an override, it also sets the class of the character to
// the override's direction.
func (v *leveller) put(i int, e embedding) {
	v.levels[i] = e.level
	if e.override != bidi.ON {
		v.classes[i] = e.override
	}
}

// next returns the lowest level above level that is odd for right to left, or even for left to right.
func next(level uint8, rtl bool) uint8 {
	if rtl {
		return level + 1 | 1
	}
	return level&^1 + 2
}

// startsRTL reports whether the text of an FSI runs from right to left.
func (v *leveller) startsRTL(initiator int) bool {
	to := v.partner[initiator]
	if to < 0 {
		to = len(v.text)
	}
	rtl, _ := FirstLetter(v.text[initiator+1 : to])
	return rtl
}

// isRemoved reports whether rule X9 removes a character.
func isRemoved(c bidi.Class) bool {
	switch c {
	case bidi.RLE, bidi.LRE, bidi.RLO, bidi.LRO, bidi.PDF, bidi.BN:
		return true
	}
	return false
}

// sequence is an isolating run sequence (BD13). It contains the positions of its characters in the text, and the
// classes before the first and after the last one (sos and eos).
type sequence struct {
	at            []int
	level         uint8
	before, after bidi.Class
}

// direction returns the class of letters in the direction of the sequence: bidi.L or bidi.R.
func (s *sequence) direction() bidi.Class { return directionOf(s.level) }

func directionOf(level uint8) bidi.Class {
	if level%2 == 1 {
		return bidi.R
	}
	return bidi.L
}

// sequences returns the isolating run sequences of the paragraph (X10).
func (v *leveller) sequences() []*sequence {
	var all []*sequence
	waiting := map[int]*sequence{} // by the PDI at which they continue
	var current *sequence
	previous := v.base // level of the previous character
	end := func(next uint8) {
		last := current.at[len(current.at)-1]
		if isInitiator(v.original[last]) {
			if pdi := v.partner[last]; pdi >= 0 {
				waiting[pdi] = current
				return
			}
			next = v.base
		}
		current.after = directionOf(max(next, current.level))
	}
	for i, c := range v.original {
		if isRemoved(c) {
			continue
		}
		if level := v.levels[i]; current == nil || level != current.level {
			if current != nil {
				end(level)
			}
			if current = waiting[i]; current == nil {
				current = &sequence{level: level, before: directionOf(max(previous, level))}
				all = append(all, current)
			}
		}
		current.at = append(current.at, i)
		previous = v.levels[i]
	}
	if current != nil {
		end(v.base)
	}
	return all
}

// endings assigns the level of the paragraph to separators, and to spaces before them and at the end (L1). Removed
// characters get the level of the previous character, so that they do not split a word.
func (v *leveller) endings() {
	for i := range v.levels {
		if isRemoved(v.original[i]) {
			v.levels[i] = v.base
			if i > 0 {
				v.levels[i] = v.levels[i-1]
			}
		}
	}
	ending := true
	for i := len(v.levels) - 1; i >= 0; i-- {
		switch c := v.original[i]; {
		case c == bidi.B || c == bidi.S:
			ending = true
		case c != bidi.WS && !isInitiator(c) && c != bidi.PDI && !isRemoved(c):
			ending = false
		}
		if ending {
			v.levels[i] = v.base
		}
	}
}
