package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/backend/internal/memory"
)

// recalled is what a call or a realtime session that remembers knows about its user. It is nil if nothing is read and
// nothing is written.
type recalled struct {
	profile memory.Profile
	said    string // the transcript before the answer, which is much shorter than the request may be
}

// text returns the profile, or "" for nil.
func (r *recalled) text() string {
	if r == nil {
		return ""
	}
	return r.profile.Text
}

// MemoryOff returns the reason why a project's apps cannot remember, as a sentence for developers, or "".
func (s *Service) MemoryOff(ctx context.Context, account, project string) (string, error) {
	if s.Memory == nil || !s.Memory.Configured() {
		return "This backend has no key for encrypting memories: its operator can set credentials_key_file.", nil
	}
	id, _, err := s.memoryModel(ctx, account, project)
	if err != nil || id != assistant.NoMemory {
		return "", err
	}
	return "The project's memory is set to " + assistant.NoMemory + ": its owner can choose another memory model.", nil
}

// memoryModel returns the memory model of a project and the ID of the gateway's model that writes the memory.
func (s *Service) memoryModel(ctx context.Context, account, project string) (id, upstream string, err error) {
	if s.Settings == nil {
		return "", Assistant, nil
	}
	id, upstream, err = s.Settings.MemoryModel(ctx, account, project)
	if upstream == "" {
		upstream = Assistant
	}
	return id, upstream, err
}

// recall reads the profile of the caller's user. It returns nil for a call that does not remember. A failure does not
// end the call, which then remembers nothing.
func (s *Service) recall(ctx context.Context, who Caller) *recalled {
	if who.User == "" {
		return nil
	}
	why, err := s.MemoryOff(ctx, who.Account, who.Project)
	if err == nil && why == "" {
		var p memory.Profile
		if p, err = s.Memory.Use(ctx, userOf(who)); err == nil {
			return &recalled{profile: p}
		}
	}
	if err != nil && ctx.Err() == nil {
		s.Log.ErrorContext(ctx, "failed to read memory", "account", who.Account, "err", err)
	}
	return nil
}

func userOf(who Caller) memory.User {
	return memory.User{Account: who.Account, Project: who.Project, Secret: who.User}
}

// recallInto reads the profile of the caller's user into the request, and notes what was said before the answer.
func (c *call) recallInto(ctx context.Context) {
	if c.recalled = c.s.recall(ctx, c.who); c.recalled == nil {
		return
	}
	c.recalled.said = transcriptOf(c.request.Lines())
	if block := memory.Block(c.recalled.profile.Text); block != "" {
		c.request.AddInstructions(block)
	}
}

// remember keeps what was said in a call until its memory is written. answer is what the app has received of it.
func (c *call) remember(answer string) {
	if c.recalled == nil {
		return
	}
	c.s.keepTranscript(&transcript{who: c.who, generation: c.recalled.profile.Generation(),
		text: appendLine(c.recalled.said, wire.Line{Role: wire.RoleAssistant, Text: answer})})
}

// rememberLine is like remember for the answer of a script.
func (c *call) rememberLine(line string) {
	if c.recalled == nil || line == "" {
		return
	}
	c.s.keepTranscript(&transcript{who: c.who, generation: c.recalled.profile.Generation(), scripted: true,
		remember: []string{line}})
}

// keepTranscript keeps a transcript until it is due. When the service stops, it is due at once. The caller must be a
// running call.
func (s *Service) keepTranscript(t *transcript) {
	now := s.Now()
	s.mergePushedOut(s.transcripts.note(t, now, s.Limits.Share))
	s.mu.Lock()
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		s.startMerges(true)
	}
}

// spoken notes what is said in a realtime session that remembers. All methods do nothing on nil.
type spoken struct {
	s  *Service
	to *transcript

	mu     sync.Mutex
	answer strings.Builder // in progress
}

// newSpoken returns a note of a realtime session, or nil if it does not remember or too many do.
func (s *Service) newSpoken(who Caller, r *recalled, scripted bool) *spoken {
	if r == nil {
		return nil
	}
	t := &transcript{who: who, generation: r.profile.Generation(), scripted: scripted}
	pushedOut, ok := s.transcripts.begin(t, s.Now(), s.Limits.Share)
	s.mergePushedOut(pushedOut)
	if !ok {
		s.Log.Warn("conversation not remembered: too many others are", "account", who.Account)
		return nil
	}
	return &spoken{s: s, to: t}
}

// client notes an event of the app that the provider receives.
func (n *spoken) client(e wire.ClientEvent) {
	var v rowEvent
	if n == nil || e.Type != "conversation.item.create" || json.Unmarshal(e.Body, &v) != nil ||
		v.Item.Type != "message" || v.Item.Role != wire.RoleUser {
		return
	}
	for _, p := range v.Item.Content {
		n.s.transcripts.say(n.to, wire.Line{Role: wire.RoleUser, Text: p.Text})
	}
}

// server notes an event of the provider. Providers send no transcript of the user's speech, because the gateway does
// not request one.
func (n *spoken) server(kind string, event []byte) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch kind {
	case "response.output_text.delta", "response.output_audio_transcript.delta":
		var v rowEvent
		if json.Unmarshal(event, &v) == nil && n.answer.Len()+len(v.Delta) <= maxTranscript {
			n.answer.WriteString(v.Delta)
		}
	case wire.EventResponseDone:
		n.flush()
	}
}

func (n *spoken) flush() {
	if n.answer.Len() > 0 {
		n.s.transcripts.say(n.to, wire.Line{Role: wire.RoleAssistant, Text: n.answer.String()})
		n.answer.Reset()
	}
}

// end writes the memory of the session. lines are what its script wants to remember. The caller must be a running call.
func (n *spoken) end(lines []string) {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.flush()
	n.mu.Unlock()
	n.s.transcripts.end(n.to, lines, n.s.Now())
	n.s.startMerges(false)
}

var errNotRemembered = errors.New("the model's text cannot be a memory")
