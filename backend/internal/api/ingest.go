package api

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/proto/backendapi"
)

// ProjectKeys tells what a project key opens, or returns projects.ErrUnknownKey.
type ProjectKeys interface {
	Authenticate(ctx context.Context, key string) (projects.KeyOwner, error)
}

// Ingester counts what shipped apps send.
type Ingester interface {
	Ingest(ctx context.Context, account, project string, events []analytics.Event) (analytics.Accepted, error)
}

const (
	batchesPerMinute = 600                            // of one project key: five events a second from each of a thousand installs
	maxValues        = 16 * backendapi.MaxBatchEvents // in a batch, so that no body unfolds into much memory
)

// ingestRoutes are those on which shipped apps send what they count. Apps in browsers send from anywhere: there is no
// cookie to misuse, the key says what may be done.
func (a *API) ingestRoutes() []route {
	if a.Keys == nil || a.Ingest == nil {
		return nil
	}
	return []route{
		{method: http.MethodPost, path: backendapi.PathIngest, door: appKey, raw: a.ingest},
		{method: http.MethodOptions, path: backendapi.PathIngest, door: anyone, raw: allowAnyOrigin},
	}
}

func allowAnyOrigin(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Access-Control-Allow-Methods", http.MethodPost)
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Content-Encoding")
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}

func (a *API) ingest(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin") // apps are on sites of their own
	w.Header().Set("Access-Control-Expose-Headers", "Retry-After")
	owner, err := a.keyOwner(r)
	if err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		a.fail(w, r, err)
		return
	}
	if wait := a.batches.Take(owner.KeyID); wait > 0 {
		a.fail(w, r, &Refusal{Code: backendapi.CodeRateLimited, Message: "too many batches with this project key",
			FixHint: fmt.Sprintf("put more events in a batch and wait %d s", seconds(wait)), RetryAfter: wait})
		return
	}
	data, err := readBatch(w, r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	b, err := decodeBatch(data)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	done, err := a.Ingest.Ingest(r.Context(), owner.AccountID, owner.Project, b.events)
	if err != nil {
		a.fail(w, r, ingestRefusal(err))
		return
	}
	a.answer(w, http.StatusOK, b.answer(done))
}

func (a *API) keyOwner(r *http.Request) (projects.KeyOwner, error) {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || len(key) > 512 {
		return projects.KeyOwner{}, invalidKey("the request carries no project key")
	}
	owner, err := a.Keys.Authenticate(r.Context(), key)
	if errors.Is(err, projects.ErrUnknownKey) {
		return owner, invalidKey("the project key is unknown or revoked")
	}
	return owner, err
}

func invalidKey(what string) *Refusal {
	return refusal(backendapi.CodeInvalidKey, what, "send Authorization: Bearer <project key>; keys are made and revoked on the project's page")
}

func ingestRefusal(err error) error {
	if errors.Is(err, analytics.ErrNoProject) {
		return invalidKey("the project of this key is gone")
	}
	return err
}

// readBatch gives the body, unpacked where it is gzip; neither is over MaxBatchBytes.
func readBatch(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, refusal(backendapi.CodeUnsupportedMedia, "the body is not application/json", "set Content-Type: application/json")
	}
	body := io.Reader(http.MaxBytesReader(w, r.Body, backendapi.MaxBatchBytes))
	switch strings.ToLower(r.Header.Get("Content-Encoding")) {
	case "", "identity":
	case "gzip":
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return nil, refusal(backendapi.CodeInvalidRequest, "the body is not gzip", "send it as its Content-Encoding says, or without one")
		}
		body = io.LimitReader(unpacked, backendapi.MaxBatchBytes+1)
	default:
		return nil, refusal(backendapi.CodeUnsupportedMedia, "the Content-Encoding is not gzip", "send gzip, or no Content-Encoding")
	}
	var data bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= backendapi.MaxBatchBytes {
		data.Grow(int(n) + bytes.MinRead)
	}
	_, err := data.ReadFrom(body)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) || data.Len() > backendapi.MaxBatchBytes {
		return nil, refusal(backendapi.CodeTooLarge, fmt.Sprintf("the batch is over %d KB", backendapi.MaxBatchBytes>>10), "send it in parts")
	}
	if err != nil {
		return nil, refusal(backendapi.CodeInvalidRequest, "the body ended early", "send it again; events that were counted do not count twice")
	}
	return data.Bytes(), nil
}

// batch is what a body holds. index tells where each of events stood; it is nil when none is broken.
type batch struct {
	events []analytics.Event
	index  []int
	broken []backendapi.AnalyticsRejected
}

// decodeBatch reads a batch. Fields that it does not know are left alone, since apps may be newer than the backend; an
// event that is no event is broken alone.
func decodeBatch(data []byte) (batch, error) {
	if bytes.Count(data, []byte(",")) > maxValues {
		return batch{}, tooManyEvents()
	}
	var whole backendapi.AnalyticsBatch
	err := json.Unmarshal(data, &whole)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return decodeEach(data)
	}
	if err != nil {
		return batch{}, invalidBody(reason(err))
	}
	if len(whole.Events) > backendapi.MaxBatchEvents {
		return batch{}, tooManyEvents()
	}
	b := batch{events: make([]analytics.Event, len(whole.Events))}
	for i := range whole.Events {
		b.events[i] = eventOf(&whole.Events[i])
	}
	return b, nil
}

func tooManyEvents() *Refusal {
	return refusal(backendapi.CodeTooLarge, fmt.Sprintf("the batch has more than %d events", backendapi.MaxBatchEvents), "send it in parts")
}

// decodeEach reads a batch in which some value has the wrong type, event by event.
func decodeEach(data []byte) (batch, error) {
	var whole struct {
		Events []json.RawMessage `json:"events"`
	}
	if err := json.Unmarshal(data, &whole); err != nil {
		return batch{}, invalidBody(reason(err))
	}
	if len(whole.Events) > backendapi.MaxBatchEvents {
		return batch{}, tooManyEvents()
	}
	var b batch
	for i, raw := range whole.Events {
		var e backendapi.AnalyticsEvent
		if err := json.Unmarshal(raw, &e); err != nil {
			why := reason(err)
			if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && wrong.Field == "" {
				why = "the event is not an object"
			}
			b.broken = append(b.broken, backendapi.AnalyticsRejected{Index: i, Reason: why})
			continue
		}
		b.events, b.index = append(b.events, eventOf(&e)), append(b.index, i)
	}
	return b, nil
}

func eventOf(e *backendapi.AnalyticsEvent) analytics.Event {
	return analytics.Event{ID: e.ID, Type: e.Type, Name: e.Name, At: time.UnixMilli(e.At), InstallID: e.InstallID,
		AppVersion: e.AppVersion, Platform: e.Platform, DeviceModel: e.DeviceModel}
}

func (b batch) answer(done analytics.Accepted) backendapi.AnalyticsAccepted {
	out := backendapi.AnalyticsAccepted{Accepted: done.Accepted, Duplicates: done.Duplicates, Late: done.Late, Sampled: done.Sampled,
		Rejected: done.Rejected + len(b.broken), SampleRate: done.SampleRate, Problems: append([]backendapi.AnalyticsRejected{}, b.broken...)}
	for _, p := range done.Problems {
		if b.index != nil {
			p.Index = b.index[p.Index]
		}
		out.Problems = append(out.Problems, backendapi.AnalyticsRejected{Index: p.Index, Reason: p.Reason})
	}
	slices.SortFunc(out.Problems, func(x, y backendapi.AnalyticsRejected) int { return cmp.Compare(x.Index, y.Index) })
	out.Problems = out.Problems[:min(len(out.Problems), analytics.MaxTold)]
	return out
}
