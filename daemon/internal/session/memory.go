package session

import (
	"cmp"
	"context"
	"net/http"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/profiles"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/internal/problem"
)

// errMemoryNotSaved is returned if the profiles could not be written. Nothing has changed.
var errMemoryNotSaved = &assistantscript.Failure{Status: http.StatusServiceUnavailable, Type: "api_error",
	Code: problem.CodeUnavailable, Message: "the profile could not be saved on disk: free space, then try again",
	RetryAfter: 1}

// errMemoryNotRead is returned while the file of the profiles cannot be read.
var errMemoryNotRead = &assistantscript.Failure{Status: http.StatusServiceUnavailable, Type: "api_error",
	Code: problem.CodeUnavailable, Message: "the profiles could not be read from disk: make memory.json in the state " +
		"directory readable, then try again", RetryAfter: 1}

// profilesOf returns the session's profiles. The caller holds Mu.
func (s *localSession) profilesOf() *profiles.Store {
	if s.memory != nil {
		return s.memory
	}
	return s.owner.profiles
}

// readableProfiles returns the session's profiles, or errMemoryNotRead. The caller holds Mu.
func (s *localSession) readableProfiles() (*profiles.Store, error) {
	store := s.profilesOf()
	if err := store.Load(); err != nil {
		s.owner.often.Warn("failed to read profiles", "err", err)
		return nil, errMemoryNotRead
	}
	return store, nil
}

// beginMemory begins a conversation that remembers. user is the user's secret; if it is empty, the result is nil. It
// returns a *assistantscript.Failure on failure. The caller holds Mu.
func (s *localSession) beginMemory(user string) (*profiles.Conversation, error) {
	if user == "" {
		return nil, nil
	}
	store, err := s.readableProfiles()
	if err != nil {
		return nil, err
	}
	s.memoryUser = user
	c := store.Begin(s.state.read().Project, user)
	s.recalls.note(c.Profile)
	return c, nil
}

// maxRecalls is the maximum number of profiles that a session keeps for recordings.
const maxRecalls = 16

// recalls holds the profile that apps used first after each time that an app attached, for recordings, which begin when
// an app attaches. It is lost when the daemon ends.
type recalls struct {
	attached int64 // the row of the last app that attached
	after    int64 // recalls are complete for apps that attached after this row
	list     []recall
}

// recall is the profile that apps used first after the row attached.
type recall struct {
	attached int64
	profile  string
}

// note records that an app uses a profile.
func (r *recalls) note(profile string) {
	if n := len(r.list); n > 0 && r.list[n-1].attached == r.attached {
		return
	}
	r.list = append(r.list, recall{r.attached, profile})
	if len(r.list) > maxRecalls {
		r.after, r.list = r.list[0].attached, r.list[1:]
	}
}

// MemoryAt returns the profile that apps of a local session used first after an app attached with the row attached, or
// "" if they used none. isKnown is false if the daemon does not know it any more.
func (m *Manager) MemoryAt(id string, attached int64) (profile string, isKnown bool) {
	s := m.local.find(id)
	if s == nil {
		return "", true // a browser session, whose profiles are never known here
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, r := range s.recalls.list {
		if r.attached >= attached {
			profile = r.profile
			break
		}
	}
	return profile, attached > s.recalls.after
}

// sweepProfiles deletes expired profiles.
func (l *localSessions) sweepProfiles() {
	if err := l.profiles.Sweep(); err != nil {
		l.log.Warn("failed to delete expired profiles", "err", err)
	}
}

// saveProfiles writes the profiles that have changed.
func (l *localSessions) saveProfiles() error {
	err := l.profiles.Save()
	if err != nil {
		l.often.Warn("failed to save profiles", "err", err)
	}
	return err
}

// memory returns the profiles and the project of the session to which token gives access, and notes the user that now
// uses them. It returns ErrGatewayToken if there is no such session, or errMemoryNotRead.
func (m *Manager) memory(token, user string) (store *profiles.Store, project string, err error) {
	app, ok := m.local.tokens.find(token, m.opts.Now())
	if !ok {
		return nil, "", ErrGatewayToken
	}
	s := app.session
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.isOver || s.script == nil {
		return nil, "", ErrGatewayToken
	}
	if store, err = s.readableProfiles(); err != nil {
		return nil, "", err
	}
	s.memoryUser, project = user, s.state.read().Project
	s.recalls.note(store.Get(project, user).Text)
	return store, project, nil
}

// Memory returns the profile of a user. token identifies the session, user is the user's secret. It returns a
// *assistantscript.Failure on failure.
func (m *Manager) Memory(token, user string) (profiles.Profile, error) {
	store, project, err := m.memory(token, user)
	if err != nil {
		return profiles.Profile{}, err
	}
	return store.Get(project, user), nil
}

// SetMemory replaces the profile of a user, as Memory identifies it, and returns it. text must satisfy
// assistantscript.CheckProfile. It returns a *assistantscript.Failure on failure.
func (m *Manager) SetMemory(token, user, text string) (profiles.Profile, error) {
	store, project, err := m.memory(token, user)
	if err == nil {
		err = m.local.notSaved(store.Put(project, user, text))
	}
	if err != nil {
		return profiles.Profile{}, err
	}
	return store.Get(project, user), nil
}

// EraseMemory removes the profile of a user, as Memory identifies it. Conversations that have begun before no longer
// change it. It returns a *assistantscript.Failure on failure.
func (m *Manager) EraseMemory(token, user string) error {
	store, project, err := m.memory(token, user)
	if err == nil {
		err = m.local.notSaved(store.Erase(project, user))
	}
	return err
}

// notSaved returns the failure for an error of the file system.
func (l *localSessions) notSaved(err error) error {
	if err == nil {
		return nil
	}
	l.often.Warn("failed to save profiles", "err", err)
	return errMemoryNotSaved
}

// UseScenario gives a session the script of a scenario and, if profile is not nil, one profile of its own, which all
// users share and which is deleted with the session; the session then no longer uses the stored profiles. Without
// script, the session keeps its script. restore brings back what the session had before, unless it was replaced
// meanwhile; a browser session that had no script keeps the scenario's, because backends cannot remove one. Only local
// sessions can have a profile of their own. UseScenario returns a *problem.Error on failure, and then changes nothing.
func (m *Manager) UseScenario(
	ctx context.Context, target backend.Target, id string, script *assistantscript.Script, profile *string,
) (restore func(context.Context) error, err error) {
	if IsLocal(id) || profile != nil {
		s, err := m.remembering(id)
		if err != nil {
			return nil, err
		}
		restore, err := s.useScenario(script, profile)
		return func(context.Context) error { return restore() }, err
	}
	before := m.AssistantScript(id)
	if script != nil {
		err = m.SetAssistantScript(ctx, target, id, script)
	}
	return func(ctx context.Context) error {
		if script == nil || before == nil {
			return nil
		}
		return m.SetAssistantScript(ctx, target, id, before)
	}, err
}

// useScenario is UseScenario for a local session.
func (s *localSession) useScenario(script *assistantscript.Script, profile *string) (restore func() error, err error) {
	if err := s.wake(); err != nil { // reads the script
		return nil, err
	}
	s.Mu.Lock()
	scriptBefore, memoryBefore := s.script, s.memory
	s.Mu.Unlock()
	memory := memoryBefore
	if profile != nil {
		memory = profiles.NewPrivate(*profile, s.Now)
	}
	restore = func() error {
		s.Mu.Lock()
		isOurScript, isOurMemory := script != nil && s.script == script, profile != nil && s.memory == memory
		s.Mu.Unlock()
		var err error
		if isOurScript {
			err = s.setScript(scriptBefore)
		}
		if isOurMemory {
			err = cmp.Or(err, s.setMemory(memoryBefore))
		}
		return err
	}
	if profile != nil {
		err = s.setMemory(memory) // before an app receives the address of the assistant
	}
	if err == nil && script != nil {
		err = s.setScript(script)
	}
	if err != nil {
		_ = restore() // the first failure matters more
	}
	return restore, err
}

// replaceScript gives the session a script and a profile of its own, or the stored profiles if profile is nil. It
// returns a *problem.Error on failure, and then changes nothing.
func (s *localSession) replaceScript(script *assistantscript.Script, profile *string) error {
	if err := s.wake(); err != nil {
		return err
	}
	s.Mu.Lock()
	before := s.memory
	s.Mu.Unlock()
	if profile == nil && before != nil {
		if err := s.setMemory(nil); err != nil { // before an app receives the address of the assistant
			return err
		}
	}
	_, err := s.useScenario(script, profile)
	if err != nil && profile == nil && before != nil {
		_ = s.setMemory(before) // the first failure matters more
	}
	return err
}

// setMemory gives the session a store with a profile of its own, or the stored profiles if store is nil. It saves
// which, so that a session with a profile of its own does not use the stored ones after a restart of the daemon.
// Conversations that are under way go on with the new profile; calls keep the one with which they began. It returns a
// *problem.Error on failure, and then changes nothing.
func (s *localSession) setMemory(store *profiles.Store) error {
	own := store != nil
	if was := s.state.read().OwnMemory; was != own {
		s.state.update(func(m *meta) { m.OwnMemory = own })
		if err := s.state.save(); err != nil {
			s.state.update(func(m *meta) { m.OwnMemory = was })
			return stateProblem("save which memory the session uses", err)
		}
	}
	s.Mu.Lock()
	s.memory = store
	for _, c := range s.conversations {
		if c.memory == nil {
			continue
		}
		next := s.profilesOf().Begin(s.state.read().Project, c.user)
		c.memory.End(c.script.ChangeMemory(next.Profile)...)
		c.memory = next
	}
	s.Mu.Unlock()
	_ = s.owner.saveProfiles() // the next change of a profile tries again
	return nil
}

// WearerMemory returns the profile of the user that the apps of a local session used last, or "" if they used none. It
// returns a *problem.Error on failure.
func (m *Manager) WearerMemory(id string) (string, error) {
	s, err := m.remembering(id)
	if err != nil {
		return "", err
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.profilesOf().Get(s.state.read().Project, s.memoryUser).Text, nil
}

func (m *Manager) remembering(id string) (*localSession, error) {
	if !IsLocal(id) {
		return nil, notRemembering()
	}
	s := m.local.find(id)
	if s == nil {
		return nil, notFound()
	}
	return s, nil
}

// notRemembering is the refusal of a scenario with memory for a browser session, whose users' profiles are the
// backend's.
func notRemembering() error {
	return problem.New(problem.CodeUnsupported, "a scenario controls conversation memory only in local sessions",
		"Use a session of startLocalSimulation, or remove memory and expectMemory from the scenario.")
}
