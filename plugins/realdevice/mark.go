package realdevice

import (
	"github.com/service-dev/service/glasses/uncleared"
)

// mark is the session's view of the mark of its pair. A set mark means that the panel may still show a picture.
type mark struct {
	stateDir string // the directory for marks; empty if there is none
	pair     uncleared.Pair
	isSet    bool // this session set the mark
	wasSet   bool // an earlier session set the mark and did not clear the panel
}

func (a *adapter) configDir() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stateDir
}

// markShown sets the mark before the first picture is sent.
func (s *session) markShown() {
	pair := s.unclearedPair()
	if s.mark.stateDir == "" || !s.glasses.HasShown() || s.mark.isSet && s.mark.pair == pair {
		return
	}
	for _, l := range s.glasses.Links() {
		if !l.Up {
			return
		}
	}
	s.mark.wasSet = uncleared.Has(s.mark.stateDir, pair)
	s.mark.pair, s.mark.isSet = pair, true
	if err := uncleared.Mark(s.mark.stateDir, s.mark.pair); err != nil {
		s.log.Warn("failed to mark the glasses as showing a picture", "err", err)
	}
}

// unmark removes the mark if the glasses have confirmed that their panel is dark.
func (s *session) unmark() {
	if s.mark.stateDir == "" || !s.glasses.Cleared() {
		return
	}
	if err := uncleared.Unmark(s.mark.stateDir, s.unclearedPair()); err != nil {
		s.log.Warn("failed to unmark cleared glasses", "err", err)
	}
}

func (s *session) unclearedPair() uncleared.Pair {
	return uncleared.Pair{DeviceModel: s.kind.DeviceModel, Name: s.pair.GetName()}
}

// isUncleared reports whether the panel may still show a picture of an earlier session.
func (s *session) isUncleared() bool {
	pair := s.unclearedPair()
	if s.mark.isSet && s.mark.pair == pair {
		return s.mark.wasSet
	}
	return s.mark.stateDir != "" && pair.Name != "" && uncleared.Has(s.mark.stateDir, pair)
}
