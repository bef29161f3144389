package pluginhost

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/internal/adapterfile"
	"github.com/service-dev/service/internal/problem"
)

// addedName is the file in the state directory that lists the added adapters.
const addedName = "adapters.json"

// Limits of the list.
const (
	maxAdded     = 16
	maxAddedFile = 64 << 10 // bytes
	maxOwner     = 256      // bytes
)

// addedAdapter is an entry of the list: a file that the user approved, and its description at that time.
type addedAdapter struct {
	Name         string    `json:"name"`
	Path         string    `json:"path"`
	SHA256       string    `json:"sha256"`
	Owner        string    `json:"owner"`
	AddedAt      time.Time `json:"addedAt"`
	Title        string    `json:"title,omitempty"`
	DeviceModels []string  `json:"deviceModels,omitempty"`
	VirtualClock bool      `json:"virtualClock,omitempty"`
}

type addedList struct {
	Adapters []addedAdapter `json:"adapters"`
}

// errUnusable is returned for a list that was read but is invalid.
var errUnusable = errors.New("the list of added adapters is corrupt")

// parseAdded parses the list. It rejects entries that Add would refuse.
func parseAdded(data []byte) ([]addedAdapter, error) {
	var list addedList
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnusable, err)
	}
	seen := map[string]bool{}
	for _, a := range list.Adapters {
		if !isSHA256(a.SHA256) || !filepath.IsAbs(a.Path) || !isFreeName(a.Name) || seen[a.Name] ||
			!isOwner(a.Owner) || len(list.Adapters) > maxAdded || checkDescription(a.transport()) != nil {
			return nil, fmt.Errorf("%w: entry %q", errUnusable, a.Name)
		}
		seen[a.Name] = true
	}
	return list.Adapters, nil
}

// isSHA256 reports whether sum is a SHA-256 in hexadecimal.
func isSHA256(sum string) bool {
	b, err := hex.DecodeString(sum)
	return err == nil && len(b) == 32
}

// isOwner reports whether the name of a file's owner can be stored and displayed.
func isOwner(name string) bool { return len(name) <= maxOwner && isLine(name) }

func (a addedAdapter) transport() backend.Transport {
	return backend.Transport{Name: a.Name, Title: a.Title, DeviceModels: a.DeviceModels, VirtualClock: a.VirtualClock}
}

// loadAdded reads the list when the host starts. It renames an unusable list so that the user can examine it, and
// starts without added adapters.
func (h *Host) loadAdded() {
	path := filepath.Join(h.opts.ConfigDir, addedName)
	data, err := statefile.Read(path, maxAddedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var list []addedAdapter
	if err == nil {
		list, err = parseAdded(data)
	}
	if errors.Is(err, errUnusable) {
		err = errors.Join(err, os.Rename(path, path+".corrupt-"+h.now().UTC().Format("20060102T150405Z")))
	}
	if err != nil {
		h.opts.Log.Warn("failed to read the list of added adapters", "err", err)
		return
	}
	for _, a := range list {
		h.added = append(h.added, h.newAdded(a))
	}
	h.sweepCopies(h.added)
}

func (h *Host) newAdded(entry addedAdapter) *adapter {
	a := newAdapter(h, entry.Name)
	a.added, a.about = &entry, new(entry.transport())
	return a
}

// replaceAdded writes the list and then applies it. The caller holds changing.
func (h *Host) replaceAdded(list []*adapter) error {
	var out addedList
	for _, a := range list {
		out.Adapters = append(out.Adapters, *a.added)
	}
	data, err := json.MarshalIndent(out, "", "  ")
	if err == nil {
		err = statefile.Write(filepath.Join(h.opts.ConfigDir, addedName), append(data, '\n'))
	}
	if err != nil {
		return &problem.Error{Code: problem.CodeStateUnwritable, Message: "the list of adapters could not be stored: " +
			err.Error(),
			FixHint: "Check the permissions of the state directory and its free space; `servicectl doctor` prints its path."}
	}
	h.setAdded(list)
	return nil
}

func (h *Host) setAdded(list []*adapter) {
	h.addedMu.Lock()
	defer h.addedMu.Unlock()
	h.added = list
}

// Add adds the user's own transport adapter. It starts the adapter once to read its description, which contains its
// name. The file must have the checksum that the user approved. An adapter that was added from the same path is
// replaced. Add returns a *problem.Error on failure.
func (h *Host) Add(ctx context.Context, path, sha256 string) (PluginStatus, error) {
	if h.unavailable != nil {
		return PluginStatus{}, h.unavailable
	}
	h.changing.Lock()
	defer h.changing.Unlock()
	defer func() { h.sweepCopies(h.listAdded()) }()
	file, err := h.approved(path, sha256)
	if err != nil {
		return PluginStatus{}, err
	}
	entry, version, err := h.try(ctx, file)
	if err != nil {
		return PluginStatus{}, notUsable(err)
	}
	var list []*adapter
	var old *adapter // the earlier version of the same file
	for _, a := range h.listAdded() {
		switch {
		case a.added.Path == entry.Path:
			old = a
		case a.name == entry.Name:
			return PluginStatus{}, duplicate(a.name, a.added.Path)
		default:
			list = append(list, a)
		}
	}
	if len(list) >= maxAdded {
		return PluginStatus{}, &problem.Error{Code: problem.CodeAdapterTooMany,
			Message: fmt.Sprintf("%d adapters were added", len(list)),
			FixHint: "Remove one that is not needed with `servicectl plugin remove NAME`, then add this one."}
	}
	a := h.newAdded(entry)
	a.status.Version = version
	if err := h.replaceAdded(append(list, a)); err != nil {
		a.end()
		return PluginStatus{}, err
	}
	if old != nil {
		old.stop()
	}
	return a.snapshot(), nil
}

// approved checks that the user's own process approved exactly this file, and consumes the approval.
func (h *Host) approved(path, sha256 string) (adapterfile.File, error) {
	approval := filepath.Join(h.opts.ConfigDir, adapterfile.ApprovalName)
	data, err := statefile.Read(approval, adapterfile.MaxApproval)
	if err != nil || !bytes.Equal(data, adapterfile.File{Path: path, SHA256: sha256}.Approval()) {
		return adapterfile.File{}, &problem.Error{Code: problem.CodeAdapterNotApproved,
			Message: "the adapter was not approved",
			FixHint: "Run `servicectl plugin add PATH` in a terminal of your own."}
	}
	if _, err := statefile.Remove(approval); err != nil {
		return adapterfile.File{}, notUsable(err)
	}
	file, err := adapterfile.Inspect(path)
	if err == nil && (file.Path != path || file.SHA256 != sha256) {
		err = refuseWith("Run `servicectl plugin add` again.", "%s changed after it was approved", path)
	}
	if err == nil && !isOwner(file.Owner) {
		err = refuseWith("Give the file to another user.", "the owner of %s has no name of at most %d bytes", path, maxOwner)
	}
	if err != nil {
		return adapterfile.File{}, notUsable(err)
	}
	return file, nil
}

// try starts a file once and returns a list entry made from its description.
func (h *Host) try(ctx context.Context, file adapterfile.File) (entry addedAdapter, version string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.life, cancel)()
	entry = addedAdapter{Path: file.Path, SHA256: file.SHA256, Owner: file.Owner, AddedAt: h.now().UTC()}
	trial := h.newAdded(entry)
	defer trial.end()
	inst, err := h.launch(ctx, trial)
	if err != nil {
		return entry, "", err
	}
	defer inst.stop()
	entry.Name, entry.Title = inst.describes.Name, inst.describes.Title
	entry.DeviceModels, entry.VirtualClock = inst.describes.DeviceModels, inst.describes.VirtualClock
	return entry, inst.about.GetVersion(), nil
}

// listAdded returns a copy of the list.
func (h *Host) listAdded() []*adapter {
	h.addedMu.RLock()
	defer h.addedMu.RUnlock()
	return slices.Clone(h.added)
}

// Remove removes an added adapter, keeping its file, and stops it. Glasses of sessions that use it are detached. It
// returns a *problem.Error on failure.
func (h *Host) Remove(name string) (PluginStatus, error) {
	h.changing.Lock()
	defer h.changing.Unlock()
	list := h.listAdded()
	i := slices.IndexFunc(list, func(a *adapter) bool { return a.name == name })
	switch {
	case i >= 0:
	case h.adapters[name] != nil:
		return PluginStatus{}, &problem.Error{Code: problem.CodeAdapterNotFound, Message: name +
			" ships with the service and stays",
			FixHint: "Pass the name of an adapter that you added; `servicectl plugin list` shows them."}
	default:
		return PluginStatus{}, &problem.Error{Code: problem.CodeAdapterNotFound,
			Message: fmt.Sprintf("no added adapter is named %q", name),
			FixHint: "Pass a name that `servicectl plugin list` shows."}
	}
	a := list[i]
	if err := h.replaceAdded(slices.Delete(list, i, i+1)); err != nil {
		return PluginStatus{}, err
	}
	a.stop()
	h.sweepCopies(h.listAdded())
	return a.snapshot(), nil
}

// verifyAdded checks the file of an added adapter before each start. Only this user and root may be able to replace it,
// and it must be the approved one. verifyAdded cannot detect that a program replaces the file after the check, so only
// a copy is run (see copyOf).
func verifyAdded(a addedAdapter) error {
	again := addAgain(a)
	info, err := os.Lstat(a.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuseWith(again, "%s is missing", a.Path)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return refuseWith(again, "%s is not a regular file", a.Path)
	case !isExecutable(info):
		return refuseWith(runHint("chmod u+x "+a.Path), "%s is not executable", a.Path)
	}
	if err := checkFileOwners(a.Path); err != nil {
		return err
	}
	file, err := adapterfile.Inspect(a.Path)
	if err == nil && (file.Path != a.Path || file.SHA256 != a.SHA256) {
		err = changedProgram(a)
	}
	return err
}

// changedProgram returns the error for a program that differs from the approved one.
func changedProgram(a addedAdapter) error {
	return refuseWith(addAgain(a), "%s is not the file that was added: its checksum differs", a.Path)
}

// addAgain returns the fix hint for a program that changed or cannot run.
func addAgain(a addedAdapter) string {
	if a.Name == "" { // it is not added yet
		return "Correct that, then add it again."
	}
	return "Run `servicectl plugin add " + a.Path + "` to approve it as it is now, or `servicectl plugin remove " +
		a.Name + "`."
}

// notUsable returns the problem of a file that cannot be added.
func notUsable(err error) error {
	p := &problem.Error{Code: problem.CodeAdapterNotUsable, Message: "the adapter cannot be used: " + err.Error(),
		FixHint: "See \"Write an adapter\" in the documentation; `servicectl daemon logs` shows what it printed."}
	var r *refusal
	if errors.As(err, &r) {
		p.FixHint = r.fixHint
	}
	return p
}

func duplicate(name, path string) error {
	return &problem.Error{Code: problem.CodeAdapterDuplicate,
		Message: fmt.Sprintf("an adapter named %s was added from %s", name, path),
		FixHint: "Remove it with `servicectl plugin remove " + name + "`, or give this one another name."}
}
