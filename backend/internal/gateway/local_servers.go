package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/internal/loopback"
	"github.com/service-dev/service/proto/backendapi"
)

// Limits on local servers.
const (
	MaxLocalServers  = 10 // servers per project
	maxLocalModels   = 50 // models per server
	maxModelsAnswer  = 1 << 20
	checkTimeout     = 5 * time.Second
	localContext     = 131_072 // tokens; limits only the counts, because local models cost nothing
	localOutput      = 16_384
	localOutputField = "max_tokens"
)

// Errors of LocalServers.
var (
	ErrServerID  = errors.New("the name " + idRule)
	ErrServerURL = errors.New("the address must be an http or https URL with a host, " +
		"and without user, query and fragment")
	ErrNotLocal     = errors.New("the address must be on this machine or in a private network")
	ErrServers      = fmt.Errorf("a project can have at most %d local servers", MaxLocalServers)
	ErrNoServer     = errors.New("the project has no such local server")
	errUnreachable  = errors.New("it does not answer: start it, then check again")
	errGateway      = errors.New("it is an AI gateway itself: enter the address of the server behind it")
	errKeyWanted    = errors.New("it requires a key: add it again, with the key")
	errKeyRefused   = errors.New("it refuses the key: remove the server and add it with another key")
	errNoModelsList = errors.New("it did not return a list of models: check the address, which usually ends in /v1")
)

// LocalServer is a model server on one of the user's own machines, such as Ollama, llama.cpp or vLLM, that the user
// added to a project. It supports the chat interface and costs nothing.
type LocalServer struct {
	ID      string   // apps use the model ID <id>/<model name>
	BaseURL string   // without the trailing /chat/completions
	Models  []string // the server's model names, from the last successful check
	Keyed   bool     // whether it is called with a key
	Problem string   // problem found by the last check; "" if it succeeded
	Checked time.Time
	LeftOut int // number of models that this check skipped because their names form no valid ID; not stored
}

// KeyInClear reports whether the server's key is sent over the network unencrypted.
func (s LocalServer) KeyInClear() bool {
	u, err := url.Parse(s.BaseURL)
	return err == nil && s.Keyed && u.Scheme == "http" && !loopback.IsHost(u.Hostname())
}

// ServerKeys stores the keys of local servers as credentials of the project. It is an interface so that tests can let
// each step of a change fail.
type ServerKeys interface {
	// CheckServerKey returns an error if SetServerKey would refuse the key.
	CheckServerKey(value string) error
	SetServerKey(ctx context.Context, account, project, server, value string, by audit.Actor) error
	// ServerKey returns "" for a server without a key.
	ServerKey(ctx context.Context, account, project, server string) (string, error)
	RemoveServerKey(ctx context.Context, account, project, server string, by audit.Actor) error
}

// LocalServers manages the servers that users add themselves. Only a backend on the user's own machine supports
// them, because it may connect to that machine and its network on the user's behalf.
type LocalServers struct {
	// Changed is called when the models of an account's servers may have changed. It may be nil.
	Changed func(ctx context.Context, account string)

	store  *Store
	keys   ServerKeys
	now    func() time.Time
	client *http.Client
}

// NewLocalServers returns a LocalServers backed by store.
func NewLocalServers(store *Store, keys ServerKeys, now func() time.Time) *LocalServers {
	return &LocalServers{store: store, keys: keys, now: now, client: newClient(localOnly)}
}

func (l *LocalServers) time() time.Time { return l.now().UTC().Truncate(time.Millisecond) }

// List returns a project's servers, ordered by ID.
func (l *LocalServers) List(ctx context.Context, account, project string) ([]LocalServer, error) {
	return l.store.LocalServers(ctx, account, project)
}

// Add adds a server, or replaces the one with the same ID, and requests its list of models. A server that does not
// respond is added with its Problem set. It changes nothing if it returns ErrServerID, ErrServerURL, ErrNotLocal,
// ErrServers, or an error of SetServerKey.
func (l *LocalServers) Add(
	ctx context.Context, account, project, id, address, key string, by audit.Actor,
) (LocalServer, error) {
	if !idForm.MatchString(id) {
		return LocalServer{}, ErrServerID
	}
	key = strings.TrimSpace(key)
	base, err := localBase(address)
	if err != nil {
		return LocalServer{}, err
	}
	s := LocalServer{ID: id, BaseURL: base, Keyed: key != ""}
	if s.Keyed {
		if err := l.keys.CheckServerKey(key); err != nil {
			return LocalServer{}, err
		}
	}
	if err := l.ask(ctx, &s, key); err != nil {
		return LocalServer{}, err
	}
	before, err := l.find(ctx, account, project, id)
	if err != nil && !errors.Is(err, ErrNoServer) {
		return LocalServer{}, err
	}
	if err := l.put(ctx, account, project, s, by); err != nil {
		return LocalServer{}, err
	}
	if s.Keyed {
		err = l.keys.SetServerKey(ctx, account, project, id, key, by)
	} else {
		err = l.keys.RemoveServerKey(ctx, account, project, id, by)
	}
	if err != nil {
		return LocalServer{}, errors.Join(err, l.restore(context.WithoutCancel(ctx), account, project, id, before, by))
	}
	l.changed(ctx, account)
	return s, nil
}

func (l *LocalServers) put(ctx context.Context, account, project string, s LocalServer, by audit.Actor) error {
	e := audit.New(l.time(), account, by, "gateway.server_added", project, "local server "+s.ID+" at "+s.BaseURL)
	if err := l.store.PutLocalServer(ctx, s, MaxLocalServers, e); err != nil {
		return fmt.Errorf("save local server: %w", err)
	}
	return nil
}

// restore restores the replaced server, whose key is still stored, or deletes the added one.
func (l *LocalServers) restore(
	ctx context.Context, account, project, id string, before LocalServer, by audit.Actor,
) error {
	if before.ID != "" {
		return l.put(ctx, account, project, before, by)
	}
	return l.drop(ctx, account, project, id, by)
}

// Check requests a server's list of models and stores the result.
func (l *LocalServers) Check(ctx context.Context, account, project, id string) (LocalServer, error) {
	s, err := l.find(ctx, account, project, id)
	if err != nil {
		return LocalServer{}, err
	}
	key := ""
	if s.Keyed {
		if key, err = l.keys.ServerKey(ctx, account, project, id); err != nil {
			return LocalServer{}, fmt.Errorf("read key of local server: %w", err)
		}
	}
	if err := l.ask(ctx, &s, key); err != nil {
		s.Problem = err.Error()
	}
	if err := l.store.NoteLocalServer(ctx, account, project, s); err != nil {
		return s, err
	}
	l.changed(ctx, account)
	return s, nil
}

func (l *LocalServers) changed(ctx context.Context, account string) {
	if l.Changed != nil {
		l.Changed(ctx, account)
	}
}

// Remove deletes a server and its key. It returns ErrNoServer if the server does not exist.
func (l *LocalServers) Remove(ctx context.Context, account, project, id string, by audit.Actor) error {
	if err := l.drop(ctx, account, project, id, by); err != nil {
		return err
	}
	return l.keys.RemoveServerKey(ctx, account, project, id, by)
}

func (l *LocalServers) drop(ctx context.Context, account, project, id string, by audit.Actor) error {
	e := audit.New(l.time(), account, by, "gateway.server_removed", project, "local server "+id)
	if err := l.store.DeleteLocalServer(ctx, id, e); err != nil {
		return fmt.Errorf("remove local server: %w", err)
	}
	return nil
}

func (l *LocalServers) find(ctx context.Context, account, project, id string) (LocalServer, error) {
	list, err := l.List(ctx, account, project)
	if err != nil {
		return LocalServer{}, fmt.Errorf("read local servers: %w", err)
	}
	i := slices.IndexFunc(list, func(s LocalServer) bool { return s.ID == id })
	if i < 0 {
		return LocalServer{}, ErrNoServer
	}
	return list[i], nil
}

// localBase returns the base address of a server. It appends /v1 to an address without a path.
func localBase(address string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		u.Scheme != "http" && u.Scheme != "https" || len(address) > maxText {
		return "", ErrServerURL
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	if u.Path == "" {
		u.Path = "/v1"
	}
	return u.String(), nil
}

// ask stores the server's list of models in s, or the problem that prevented it. It returns only ErrNotLocal.
func (l *LocalServers) ask(ctx context.Context, s *LocalServer, key string) error {
	names, err := l.listModels(ctx, s.BaseURL, key)
	if errors.Is(err, ErrNotLocal) {
		return ErrNotLocal
	}
	s.Checked, s.Problem = l.time(), ""
	if err != nil {
		s.Problem = err.Error()
		return nil
	}
	s.Models = slices.DeleteFunc(names, func(name string) bool { return !askable(s.ID, name) })
	s.LeftOut = len(names) - len(s.Models)
	s.Models = s.Models[:min(len(s.Models), maxLocalModels)]
	return nil
}

func (l *LocalServers) listModels(ctx context.Context, base, key string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", nil)
	if err != nil {
		return nil, ErrServerURL
	}
	r.Header.Set(ForwardedHeader, "1")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := l.client.Do(r)
	switch {
	case errors.Is(err, ErrNotLocal):
		return nil, err
	case err != nil:
		return nil, errUnreachable
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden {
		if key == "" {
			return nil, errKeyWanted
		}
		return nil, errKeyRefused
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxModelsAnswer))
	if err != nil {
		return nil, errUnreachable
	}
	if response.StatusCode == http.StatusBadRequest && wire.ErrorMessage(body) == Forwarded().Message {
		return nil, errGateway
	}
	names, ok := parseModels(body)
	if response.StatusCode != http.StatusOK || !ok {
		return nil, errNoModelsList
	}
	return names, nil
}

// askable reports whether the model ID formed from server and name is valid in every response of this backend.
func askable(server, name string) bool {
	return name != "" && backendapi.IsName(server+"/"+name, backendapi.MaxModelID)
}

// parseModels returns the sorted names in a list of models. ok is false if body is not a list of models.
func parseModels(body []byte) (names []string, ok bool) {
	var answer struct {
		Data *[]struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Data == nil {
		return nil, false
	}
	for _, m := range *answer.Data {
		names = append(names, m.ID)
	}
	slices.Sort(names)
	return slices.Compact(names), true
}

// models returns the models of a project's servers. l may be nil.
func (l *LocalServers) models(ctx context.Context, who Caller) (list []*Model, err error) {
	if l == nil {
		return nil, nil
	}
	servers, err := l.List(ctx, who.Account, who.Project)
	if err != nil {
		return nil, fmt.Errorf("read local servers: %w", err)
	}
	for _, s := range servers {
		p := &Provider{ID: s.ID, Name: s.ID, Local: true, added: true, keyed: s.Keyed, base: s.BaseURL,
			header: "Authorization", prefix: "Bearer "}
		for _, name := range s.Models {
			if !askable(s.ID, name) { // an older version stored it
				continue
			}
			list = append(list, &Model{ID: s.ID + "/" + name, Name: name, Description: "On your own server.", Provider: p,
				API: wire.Chat, upstream: name, outputField: localOutputField, context: localContext, output: localOutput,
				defaultOutput: defaultOutput})
		}
	}
	return list, nil
}

// key returns the key of a server that a project's owner added, or no key.
func (l *LocalServers) key(ctx context.Context, who Caller, server string) (key, error) {
	text, err := l.keys.ServerKey(ctx, who.Account, who.Project, server)
	if err != nil || text == "" {
		return key{}, err
	}
	return newKey(text), nil
}
