package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/proto/glasses"
)

// StartLocal opens the local session of (project, directory), or another when Fresh is set or clock or fixtures differ. It
// needs no account and no network. Its glasses are attached when it returns. Errors are *backend.Problem.
func (m *Manager) StartLocal(ctx context.Context, who caller.Caller, req LocalRequest) (Opened, error) {
	if m.opts.Transports == nil {
		return Opened{}, m.local.refused
	}
	want, err := m.localMeta(ctx, who, req)
	if err != nil {
		return Opened{}, err
	}
	unlock := m.minting.lock(want.Project + "\x00" + want.Dir)
	defer unlock()
	r, created := m.local.find(want, req), false
	if r == nil {
		created = true
		if r, err = m.local.create(want); err != nil {
			return Opened{}, err
		}
	}
	var opened Opened
	if err = r.copyFixtures(ctx, clientio.FilesOf(who), want.FixturesDir); err == nil {
		opened, err = m.opened(ctx, r, created, req.DeviceModel)
	}
	if err != nil {
		if created {
			m.local.remove(r, CloseRestart, "the session could not be opened")
		}
		return Opened{}, err
	}
	m.latest.set(who.Cwd, r.id)
	return opened, nil
}

func (m *Manager) opened(ctx context.Context, r *room, created bool, model string) (Opened, error) {
	if err := r.wake(); err != nil {
		return Opened{}, err
	}
	if err := r.worn(ctx); err != nil {
		return Opened{}, err
	}
	if !created && model != "" && model != r.session().DeviceModel {
		res, err := r.control(ctx, glasses.SimDevice, glasses.DeviceChoice{DeviceModel: model}, nil)
		if err != nil {
			return Opened{}, err
		}
		if res.Error != nil {
			return Opened{}, &backend.Problem{Code: res.Error.Code, Message: res.Error.Message}
		}
	}
	path, err := r.secret()
	if err != nil {
		return Opened{}, err
	}
	s := r.session()
	if s.AppEndpoint, err = m.opts.Endpoints.AppEndpoint(ctx, r.id); err != nil {
		return Opened{}, stateProblem("opening the address for apps", err)
	}
	return Opened{Session: s, Created: created, AppTokenFile: path}, nil
}

// localMeta is the session that a request asks for.
func (m *Manager) localMeta(ctx context.Context, who caller.Caller, req LocalRequest) (meta, error) {
	want := meta{Clock: req.Clock}
	switch req.Clock {
	case "":
		want.Clock = backend.ClockReal
	case backend.ClockReal, backend.ClockVirtual:
	default:
		return want, invalid("clock is neither virtual nor real", `pass "virtual" for time that moves when you advance it, or leave it out`)
	}
	want.Snapshot = glasses.Snapshot{DeviceModel: glasses.DefaultDeviceModel, State: glasses.FreshState(), View: glasses.View{Focus: -1}}
	if req.DeviceModel != "" {
		if _, ok := glasses.Model(req.DeviceModel); !ok {
			return want, invalid("deviceModel is not the id of a known model", "pass an id such as rayban_display or even_g1, or leave it out")
		}
		want.Snapshot.DeviceModel = req.DeviceModel
	}
	if req.FixturesDir != "" {
		dir := req.FixturesDir
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(who.Cwd, dir)
		}
		if !filepath.IsAbs(dir) {
			return want, notFixtures(req.FixturesDir)
		}
		want.FixturesDir = filepath.Clean(dir)
	}
	var err error
	if want.Project, err = m.projectOf(ctx, req.Project, who); err != nil {
		return want, err
	}
	want.Dir = cleanDir(who.Cwd)
	return want, nil
}

// secret gives the path of the file with the app secret, and makes one where there is none. Only its hash is kept
// elsewhere.
func (r *room) secret() (string, error) {
	r.renewing.Lock()
	defer r.renewing.Unlock()
	path := r.secretFile()
	data, err := statefile.Read(path, maxToken)
	if err == nil && r.opens(strings.TrimSpace(string(data))) {
		return path, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", stateProblem("reading the session's app token", err)
	}
	return path, r.renewSecret()
}

func (r *room) secretFile() string { return filepath.Join(r.folder(), tokenName) }

// renewSecret puts a new secret in the place of the session's old one. The caller holds r.renewing.
func (r *room) renewSecret() error {
	secret := newSecret()
	if err := statefile.Write(r.secretFile(), []byte(secret)); err != nil {
		return stateProblem("writing the session's app token", err)
	}
	r.mu.Lock()
	r.meta.SecretHash, r.changed = hash(secret), true
	r.mu.Unlock()
	if err := r.save(); err != nil {
		return stateProblem("keeping the session's app token", err)
	}
	return nil
}

// RenewSecrets replaces the app secret of every local session; apps find the new one in the same file. An app that is
// attached stays attached.
func (m *Manager) RenewSecrets() error {
	for _, r := range m.local.list() {
		r.renewing.Lock()
		err := r.renewSecret()
		r.renewing.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// opens tells whether a secret is the session's.
func (r *room) opens(secret string) bool {
	r.mu.Lock()
	want := r.meta.SecretHash
	r.mu.Unlock()
	return want != "" && subtle.ConstantTimeCompare([]byte(hash(secret)), []byte(want)) == 1
}

// hash needs no key: a secret has 256 random bits.
func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// newSecret has the form of the backend's session secrets, so that secret scanners spot it too.
func newSecret() string {
	var b [32]byte
	rand.Read(b[:])
	body := "sst_" + base64.RawURLEncoding.EncodeToString(b[:])
	const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var tail [6]byte
	sum := crc32.ChecksumIEEE([]byte(body))
	for i := len(tail) - 1; i >= 0; i-- {
		tail[i] = base62[sum%62]
		sum /= 62
	}
	return body + string(tail[:])
}

// session is what others see of it.
func (r *room) session() backend.Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := backend.Session{
		SessionID: r.id, Project: r.meta.Project, DeviceModel: r.meta.Snapshot.DeviceModel, State: "open",
		CreatedAt: r.meta.CreatedAt, LastActiveAt: r.meta.LastActiveAt, ExpiresAt: r.meta.LastActiveAt.Add(localLife),
		Apps: len(*r.apps.Load()), LastSeq: r.meta.Seq, Transport: backend.TransportLocal, Clock: r.meta.Clock, NowMs: r.clock(),
	}
	if r.live {
		s.LastSeq = r.log.newest()
	}
	return s
}

func noMedia() error {
	return &backend.Problem{Code: backend.CodeNotFound, Message: "the session has no such media", FixHint: "take the sha256 of a result in the event log"}
}

func tooMany() error {
	return &backend.Problem{Code: backend.CodeTooManySessions, Message: fmt.Sprintf("%d local sessions are open, which is the most there can be", MaxLocal),
		FixHint: "call getSessionStatus to list them and closeSession for those that nobody needs"}
}
