package api

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/httpjson"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

const (
	batchesPerMinute = 600                            // limit per project key: a thousand installs at 5 events a second
	maxValues        = 16 * backendapi.MaxBatchEvents // JSON values in a batch; limits the memory used to decode it
)

// ingestRoutes returns the routes for events of shipped apps. Apps in browsers may send from any origin: only the key
// authorises the request, and there is no cookie to misuse.
func (a *API) ingestRoutes() []route {
	return []route{
		{method: http.MethodPost, path: backendapi.PathIngest, level: appKey, raw: a.ingest},
		{method: http.MethodOptions, path: backendapi.PathIngest, level: anyone, raw: allowAnyOrigin},
	}
}

func allowAnyOrigin(w http.ResponseWriter, _ *http.Request) {
	httpjson.Preflight(w, http.MethodPost, "Authorization, Content-Type, Content-Encoding")
}

func (a *API) ingest(w http.ResponseWriter, r *http.Request) {
	httpjson.AllowAnyOrigin(w)
	owner, err := a.keyOwner(r)
	if err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		a.fail(w, r, err)
		return
	}
	if wait := a.batches.Take(owner.KeyID); wait > 0 {
		a.fail(w, r, rateLimited(wait, "too many batches with this project key",
			"Put more events into each batch and wait %d s."))
		return
	}
	accepted, err := a.ingestBatch(w, r, owner)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.answer(w, http.StatusOK, accepted)
}

func (a *API) ingestBatch(w http.ResponseWriter, r *http.Request, owner projects.KeyOwner) (any, error) {
	data, err := readBatch(w, r)
	if err != nil {
		return nil, err
	}
	b, err := decodeBatch(data)
	if err != nil {
		return nil, err
	}
	done, err := a.Analytics.Ingest(r.Context(), owner.AccountID, owner.Project, b.events)
	if errors.Is(err, analytics.ErrNoProject) {
		return nil, invalidKey("the project that this key belongs to no longer exists")
	}
	return b.answer(done), err
}

func (a *API) keyOwner(r *http.Request) (projects.KeyOwner, error) {
	key, ok := httpjson.Bearer(r.Header.Get("Authorization"))
	if !ok {
		return projects.KeyOwner{}, invalidKey("the request has no project key")
	}
	owner, err := a.Projects.Authenticate(r.Context(), key)
	if errors.Is(err, projects.ErrUnknownKey) {
		return owner, invalidKey("the project key is unknown or revoked")
	}
	return owner, err
}

func invalidKey(what string) *problem.Error {
	return problem.New(problem.CodeInvalidKey, what,
		"Send Authorization: Bearer <project key>; create and revoke keys on the project's page.")
}

// readBatch reads and decompresses the body, which is limited to MaxBatchBytes before and after decompression.
func readBatch(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if err := httpjson.CheckContentType(r); err != nil {
		return nil, notJSON
	}
	body := io.Reader(http.MaxBytesReader(w, r.Body, backendapi.MaxBatchBytes))
	switch strings.ToLower(r.Header.Get("Content-Encoding")) {
	case "", "identity":
	case "gzip":
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return nil, invalidRequest("the body is not gzip", "Compress it with gzip, or send no Content-Encoding.")
		}
		body = io.LimitReader(unpacked, backendapi.MaxBatchBytes+1)
	default:
		return nil, problem.New(problem.CodeUnsupportedMedia, "the Content-Encoding must be gzip",
			"Send gzip, or no Content-Encoding.")
	}
	data, err := httpjson.ReadAll(r, body, backendapi.MaxBatchBytes)
	if errors.Is(err, httpjson.ErrTooLarge) {
		return nil, problem.New(problem.CodeRequestTooLarge,
			fmt.Sprintf("the batch is over %d KB", backendapi.MaxBatchBytes>>10), "Send it in parts.")
	}
	if err != nil {
		return nil, invalidRequest("the body ended early", "Send it again; events already counted are not counted twice.")
	}
	return data, nil
}

// batch is a decoded body. index contains each event's position in the body; it is nil if all events are
// valid.
type batch struct {
	events []analytics.Event
	index  []int
	broken []backendapi.AnalyticsRejected
}

// lenient ignores unknown fields, uses the last value of a repeated field, and accepts names in any case.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
	json.MatchCaseInsensitiveNames(true))

// decodeBatch decodes a body. It ignores unknown fields, because apps may be newer than the backend. A malformed event
// does not affect the other events.
func decodeBatch(data []byte) (batch, error) {
	if bytes.Count(data, []byte(",")) > maxValues {
		return batch{}, tooManyEvents()
	}
	var whole backendapi.AnalyticsBatch
	err := json.Unmarshal(data, &whole, lenient)
	if wrong := (*json.SemanticError)(nil); errors.As(err, &wrong) {
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

func tooManyEvents() *problem.Error {
	return problem.New(problem.CodeRequestTooLarge,
		fmt.Sprintf("the batch contains more than %d events", backendapi.MaxBatchEvents), "Send it in parts.")
}

// decodeEach decodes a batch event by event. decodeBatch uses it if any value has the wrong type.
func decodeEach(data []byte) (batch, error) {
	var whole struct {
		Events []jsontext.Value `json:"events"`
	}
	if err := json.Unmarshal(data, &whole, lenient); err != nil {
		return batch{}, invalidBody(reason(err))
	}
	if len(whole.Events) > backendapi.MaxBatchEvents {
		return batch{}, tooManyEvents()
	}
	var b batch
	for i, raw := range whole.Events {
		var e backendapi.AnalyticsEvent
		if err := json.Unmarshal(raw, &e, lenient); err != nil {
			why := reason(err)
			if wrong := (*json.SemanticError)(nil); errors.As(err, &wrong) && wrong.JSONPointer == "" {
				why = "the event must be an object"
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
	out := backendapi.AnalyticsAccepted{
		Accepted: done.Accepted, Duplicates: done.Duplicates, Late: done.Late, Sampled: done.Sampled,
		Rejected: done.Rejected + len(b.broken), SampleRate: done.SampleRate,
		Problems: append([]backendapi.AnalyticsRejected{}, b.broken...),
	}
	for _, p := range done.Problems {
		if b.index != nil {
			p.Index = b.index[p.Index]
		}
		out.Problems = append(out.Problems, backendapi.AnalyticsRejected{Index: p.Index, Reason: p.Reason})
	}
	slices.SortFunc(out.Problems, func(x, y backendapi.AnalyticsRejected) int { return cmp.Compare(x.Index, y.Index) })
	out.Problems = out.Problems[:min(len(out.Problems), analytics.MaxProblems)]
	return out
}
