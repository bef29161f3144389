package realdevice

import (
	"google.golang.org/protobuf/proto"

	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/driver/panelcheck"
	"github.com/service-dev/service/plugins/internal/glassespage"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

func panelOf(p interface {
	GetInverted() bool
	GetRows() int32
}) driver.Panel {
	return driver.Panel{Inverted: p.GetInverted(), Rows: int(p.GetRows())}
}

// setPanel applies the host's settings for how the panel shows pictures.
func (s *session) setPanel(p *pluginv1.PairPanel) {
	if s.check != nil {
		s.check.Cancel(s.wall())
		s.check = nil
	}
	s.keepPanel(p)
	s.glasses.SetPanel(s.wall(), panelOf(p))
}

// keepPanel records how the panel of the pair shows pictures.
func (s *session) keepPanel(p *pluginv1.PairPanel) {
	s.pair, _ = proto.Clone(s.pair).(*pluginv1.Pair) // cloned because the reported pair must not change
	s.pair.Inverted, s.pair.Rows, s.pair.Checked = p.GetInverted(), p.GetRows(), p.GetChecked()
}

// answer handles the user's actions on the page: starting or cancelling a check, and answering its questions.
func (s *session) answer(a glassespage.PanelAnswer) {
	switch now := s.wall(); {
	case a.Begin && s.kind.OtherRows != 0 && (s.check == nil || s.check.IsOver()):
		s.check = panelcheck.Begin(now, s.glasses, panelOf(s.pair))
	case s.check == nil || a.Begin:
	case a.Cancel:
		s.check.Cancel(now)
		s.check = nil
	default:
		s.check.Answer(now, a.Upright, a.Border)
		s.endCheck()
	}
}

// endCheck records the result of a check.
func (s *session) endCheck() {
	if s.check.Step() != panelcheck.Right {
		return
	}
	p := s.check.Panel()
	s.said = &pluginv1.PairPanel{Inverted: p.Inverted, Rows: int32(p.Rows), Checked: true}
	s.keepPanel(s.said)
}

// showCheck adds the check of the panel to the information on the page.
func (s *session) showCheck(shown *glassespage.Shown) {
	shown.CanCheck, shown.Checked = s.kind.OtherRows != 0, s.pair.GetChecked()
	if s.check != nil {
		shown.Check = string(s.check.Step())
	}
}
