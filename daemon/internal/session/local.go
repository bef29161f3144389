package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
)

// StartLocal opens the local session for (project, directory). It creates a new one if Fresh is set or the clock or
// fixtures differ. It needs neither an account nor the network. The glasses are attached when it returns. It returns a
// *problem.Error on failure.
func (m *Manager) StartLocal(ctx context.Context, who caller.Caller, req LocalRequest) (Opened, error) {
	if m.opts.Transports == nil {
		return Opened{}, m.local.refused
	}
	req, err := m.twin(req)
	if err != nil {
		return Opened{}, err
	}
	want, err := m.localMeta(ctx, who, req)
	if err != nil {
		return Opened{}, err
	}
	script, memory, err := ReadScript(ctx, who, req.AssistantScript)
	if err != nil {
		return Opened{}, err
	}
	unlock := m.minting.lock(want.Project + "\x00" + want.Dir)
	defer unlock()
	s, created := m.local.match(want, req), false
	if s == nil {
		created = true
		if err = m.chooseTransport(&want, req); err != nil {
			return Opened{}, err
		}
		if s, err = m.local.create(want); err != nil {
			return Opened{}, err
		}
	}
	var opened Opened
	if err = s.copyFixtures(ctx, clientio.FilesOf(who), want.FixturesDir); err == nil && script != nil {
		err = s.replaceScript(script, memory)
	}
	if err == nil {
		opened, err = m.prepare(ctx, s, created, req.DeviceModel)
	}
	if err != nil {
		if created {
			m.local.remove(s, glasses.CloseRestart, "the session could not be opened")
		}
		return Opened{}, err
	}
	m.latest.set(who.Workspace(), s.id)
	return opened, nil
}

// twin completes a request with TwinOf, for simulated glasses that resemble the glasses of another session.
func (m *Manager) twin(req LocalRequest) (LocalRequest, error) {
	if req.TwinOf == "" {
		return req, nil
	}
	s := m.local.find(req.TwinOf)
	if s == nil {
		return req, notFound()
	}
	req.DeviceModel = cmp.Or(req.DeviceModel, s.describe().DeviceModel)
	req.Pace, req.Transport = cmp.Or(req.Pace, PaceReal), cmp.Or(req.Transport, localSim)
	return req, nil
}

// prepare waits until a session is ready for apps. model is the requested device model; empty if none.
func (m *Manager) prepare(ctx context.Context, s *localSession, created bool, model string) (Opened, error) {
	if err := s.wake(); err != nil {
		return Opened{}, err
	}
	if err := s.transport.wait(ctx, m.local.life); err != nil {
		return Opened{}, err
	}
	if !created && model != "" && model != s.describe().DeviceModel {
		res, err := s.control(ctx, glasses.SimDevice, glasses.DeviceChoice{DeviceModel: model}, nil)
		if err = refusal(res, err); err != nil {
			return Opened{}, err
		}
	}
	if err := s.secret.ensure(); err != nil {
		return Opened{}, err
	}
	endpoint, err := m.opts.Endpoints.AppEndpoint(ctx, s.id)
	if err != nil {
		return Opened{}, endpointProblem(err)
	}
	opened := Opened{Session: s.describe(), Created: created, AppTokenFile: s.secret.path}
	opened.AppEndpoint = endpoint
	return opened, nil
}

// endpointProblem returns the problem of a failure to open the address for apps.
func endpointProblem(err error) error {
	var refused *net.OpError
	if !errors.As(err, &refused) {
		return stateProblem("open the address for apps", err)
	}
	return problem.New(problem.CodeLoopbackUnreachable, fmt.Sprintf("open an address on 127.0.0.1 for apps: %v", err),
		"Allow the address in the sandbox or container in which the daemon was started, or run `servicectl daemon restart` "+
			"outside of it.")
}

// localMeta returns the state of the session that a request describes.
func (m *Manager) localMeta(ctx context.Context, who caller.Caller, req LocalRequest) (meta, error) {
	want := meta{Clock: req.Clock}
	switch req.Clock {
	case "":
		want.Clock = backend.ClockReal
	case backend.ClockReal, backend.ClockVirtual:
	default:
		return want, invalid("clock must be virtual or real",
			`Pass "virtual" for time that moves when you advance it, or leave it out.`)
	}
	switch req.Pace {
	case PaceReal:
		want.Pace = PaceReal
	case "", PaceNone:
	default:
		return want, invalid("pace must be real or none", `Pass "real" for a panel as slow as a real one.`)
	}
	if req.Via != "" && !slices.Contains([]string{ViaAuto, ViaBlueZ, ViaBrowser}, req.Via) {
		return want, invalid(fmt.Sprintf("via must be auto, bluez or browser, not %.40q", req.Via),
			"Pass auto, bluez or browser, or leave it out.")
	}
	want.Snapshot = glasses.Snapshot{
		DeviceModel: glasses.DefaultDeviceModel, State: glasses.FreshState(), View: glasses.View{Focus: -1},
	}
	if req.DeviceModel != "" {
		if _, ok := glasses.Model(req.DeviceModel); !ok {
			return want, invalid("deviceModel must be the id of a known model",
				"Pass an id such as rayban_display or even_g1, or leave it out.")
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
	want.Dir = cleanDir(who.Workspace())
	return want, nil
}

// RenewSecrets replaces the app secret of every local session. Apps find the new secret in the same file. Apps that are
// attached stay attached.
func (m *Manager) RenewSecrets() error {
	for _, s := range m.local.list() {
		if err := s.secret.renew(); err != nil {
			return err
		}
	}
	return nil
}

func noMedia() error {
	return problem.New(problem.CodeNotFound, "the session has no such media",
		"Pass the sha256 of a result in the event log.")
}

func tooManySessions() error {
	return problem.New(problem.CodeTooManySessions, fmt.Sprintf("the limit of %d open local sessions is reached",
		MaxLocal),
		"Call getSessionStatus to list them and closeSession for those that you do not need.")
}
