package broker

import "github.com/service-dev/service/glasses"

// Phrases and transcription are standing state, which outlives the glasses that accepted it. Hosts store the state and
// send it, as sim.standing, to glasses that attach later.

// Standing returns the standing state after the command has succeeded. before is the state before the command and is
// not modified.
func (c Command) Standing(before glasses.Standing) glasses.Standing {
	switch p := c.Value.(type) {
	case *glasses.Announce:
		before.Phrases = p.Phrases
	case *glasses.TranscriptionStart:
		before.Transcription = p
	}
	if c.Type == glasses.TypeTranscriptionStop {
		before.Transcription = nil
	}
	return before
}

// ChangesStanding reports whether a successful command of this type may change the standing state.
func (c Command) ChangesStanding() bool {
	return c.Type == glasses.TypeTranscriptionStart || needsNoGlasses(c.Type)
}

// needsNoGlasses reports whether commands of type typ succeed without glasses. Glasses that attach later receive the
// setting as standing state.
func needsNoGlasses(typ string) bool {
	return typ == glasses.TypePhrasesAnnounce || typ == glasses.TypeTranscriptionStop
}

// ForGlasses returns the standing state to restore on glasses now. It omits transcription if no app is attached.
func ForGlasses(s glasses.Standing, apps int) glasses.Standing {
	if s.Phrases == nil {
		s.Phrases = []string{}
	}
	if apps == 0 {
		s.Transcription = nil
	}
	return s
}
