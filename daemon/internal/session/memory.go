package session

import (
	"net/http"

	"github.com/service-dev/service/daemon/internal/profiles"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/internal/problem"
)

// errMemoryNotSaved is returned if the profiles could not be written. The change is kept in memory.
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
	return store.Begin(s.state.read().Project, user), nil
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

// memory calls do with the profiles and the project of the session to which token gives access, and with the user that
// now uses them. It returns ErrGatewayToken if there is no such session, or errMemoryNotRead.
func (m *Manager) memory(token, user string, do func(*profiles.Store, string)) error {
	app, ok := m.local.tokens.find(token, m.opts.Now())
	if !ok {
		return ErrGatewayToken
	}
	s := app.session
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.isOver || s.script == nil {
		return ErrGatewayToken
	}
	store, err := s.readableProfiles()
	if err != nil {
		return err
	}
	s.memoryUser = user
	do(store, s.state.read().Project)
	return nil
}

// Memory returns the profile of a user. token identifies the session, user is the user's secret. It returns a
// *assistantscript.Failure on failure.
func (m *Manager) Memory(token, user string) (p profiles.Profile, err error) {
	err = m.memory(token, user, func(s *profiles.Store, project string) { p = s.Get(project, user) })
	return p, err
}

// SetMemory replaces the profile of a user, as Memory identifies it, and returns it. text must satisfy
// assistantscript.CheckProfile. It returns a *assistantscript.Failure on failure.
func (m *Manager) SetMemory(token, user, text string) (p profiles.Profile, err error) {
	err = m.memory(token, user, func(s *profiles.Store, project string) {
		s.Put(project, user, text)
		p = s.Get(project, user)
	})
	if err == nil && m.local.saveProfiles() != nil {
		err = errMemoryNotSaved
	}
	return p, err
}

// EraseMemory removes the profile of a user, as Memory identifies it. Conversations that have begun before no longer
// change it. It returns a *assistantscript.Failure on failure.
func (m *Manager) EraseMemory(token, user string) error {
	err := m.memory(token, user, func(s *profiles.Store, project string) { s.Erase(project, user) })
	if err == nil && m.local.saveProfiles() != nil {
		err = errMemoryNotSaved
	}
	return err
}

// UsePrivateMemory gives a local session one profile of its own, which all users share and which is deleted with the
// session. The session no longer uses the stored profiles. It returns a *problem.Error on failure.
func (m *Manager) UsePrivateMemory(id, profile string) error {
	s, err := m.remembering(id)
	if err != nil {
		return err
	}
	return s.setMemory(&profile)
}

// setMemory gives the session a profile of its own, or the stored profiles if profile is nil. It saves which, so that
// a session with a profile of its own does not use the stored ones after a restart of the daemon. It returns a
// *problem.Error on failure, and then changes nothing.
func (s *localSession) setMemory(profile *string) error {
	own := profile != nil
	if was := s.state.read().OwnMemory; was != own {
		s.state.update(func(m *meta) { m.OwnMemory = own })
		if err := s.state.save(); err != nil {
			s.state.update(func(m *meta) { m.OwnMemory = was })
			return stateProblem("save which memory the session uses", err)
		}
	}
	var store *profiles.Store
	if own {
		store = profiles.NewPrivate(*profile, s.Now)
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.memory = store
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
		return nil, problem.New(problem.CodeUnsupported, "a scenario controls conversation memory only in local sessions",
			"Run it on a session of startLocalSimulation.")
	}
	s := m.local.find(id)
	if s == nil {
		return nil, notFound()
	}
	return s, nil
}
