package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

const (
	// settle is longer than the API server's limit of a minute for a request that was sent before the storage version
	// changed.
	settle   = 90 * time.Second
	pageSize = 100
	// attempts is how often a request is sent that is not answered.
	attempts = 4
	// unanswered is after how many failed objects in a row a CRD is left.
	unanswered = 20
	// named is how many failed objects a result names.
	named = 100
)

// Target is a CRD and the version in which its objects are to be stored.
type Target struct{ CRD, Version string }

// Options of Migrate. The zero value rewrites objects.
type Options struct {
	// DryRun counts the objects and writes nothing.
	DryRun bool
	// Settle is how long Migrate waits before the first write, once for all CRDs. Defaults to 90 seconds. API servers
	// observe a new storage version within moments, and finish within a minute what they had begun.
	Settle time.Duration
	// Report is called before Migrate waits, after each page of objects, and when the migration of a CRD ends.
	Report func(Progress)
	// PageSize is how many objects a list returns at once. Defaults to 100.
	PageSize int64
	// Clock defaults to that of the machine.
	Clock clock.Clock
}

func (o Options) withDefaults() Options {
	if o.Settle == 0 {
		o.Settle = settle
	}
	if o.PageSize == 0 {
		o.PageSize = pageSize
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Report == nil {
		o.Report = func(Progress) {}
	}
	return o
}

// Result is the end of a migration of a CRD.
type Result struct {
	Target

	// Stored are the versions in status.storedVersions before the migration; none where the CRD is not installed.
	Stored []string
	// Objects is how many were rewritten, or counted in a dry run.
	Objects int
	// Failed is how many could not be rewritten. Failures are the first 100 of them.
	Failed   int
	Failures []Failure
	// Pruned is set if the older versions were removed from status.storedVersions.
	Pruned bool
	// Err is why older versions are left, if no object failed.
	Err error
}

// Progress is how far Migrate is.
type Progress struct {
	// Result is that of the CRD so far. Before Migrate waits, the CRD is the first one that needs a migration.
	Result

	// Total is how many objects the CRD has.
	Total int
	// Wait is how long Migrate waits for API servers that may write older versions; zero when it rewrites.
	Wait time.Duration
}

// Failure is an object that could not be rewritten.
type Failure struct {
	Object types.NamespacedName
	Err    error
}

// Done reports whether the CRD has no objects in older versions, by its status.storedVersions.
func (r Result) Done() bool { return r.Err == nil && r.Failed == 0 }

// Migrate rewrites the objects of the targets in their storage versions, one CRD after the other. Each result stands
// at the place of its target. The error is that of the given context or configuration; the failures of CRDs and
// objects are in the results.
func Migrate(ctx context.Context, config *rest.Config, targets []Target, o Options) ([]Result, error) {
	api, err := newAPI(config)
	if err != nil {
		return nil, err
	}
	m := &migrator{server: api, options: o.withDefaults()}
	return m.migrate(ctx, targets)
}

// migrator migrates CRDs, one after the other.
type migrator struct {
	server  server
	options Options
}

func (m *migrator) migrate(ctx context.Context, targets []Target) ([]Result, error) {
	results, plans := make([]Result, len(targets)), make([]Plan, len(targets))
	needed := -1
	for i, target := range targets {
		results[i].Target = target
		plans[i], results[i].Err = m.plan(ctx, target)
		results[i].Stored = plans[i].Stored
		if needed < 0 && results[i].Err == nil && plans[i].Needed() {
			needed = i
		}
	}
	if needed >= 0 && !m.options.DryRun {
		m.options.Report(Progress{Result: results[needed], Wait: m.options.Settle})
		if err := m.pause(ctx, m.options.Settle); err != nil {
			return results, err
		}
	}
	for i := range results {
		switch r := &results[i]; {
		case r.Err != nil || !plans[i].Needed():
		case m.options.DryRun:
			r.Objects, r.Err = m.count(ctx, plans[i])
		default:
			m.rewriteAll(ctx, plans[i], r)
			m.options.Report(Progress{Result: *r, Total: r.Objects + r.Failed})
		}
	}
	return results, ctx.Err()
}

// plan reads a CRD. One that is not installed needs nothing.
func (m *migrator) plan(ctx context.Context, target Target) (Plan, error) {
	crd, err := m.definition(ctx, target.CRD)
	if apierrors.IsNotFound(err) {
		return Plan{}, nil
	}
	if err != nil {
		return Plan{}, err
	}
	return Decide(crd, target.Version)
}

func (m *migrator) definition(ctx context.Context, name string) (crd *definition, err error) {
	err = m.retry(ctx, func() (err error) {
		crd, err = m.server.definition(ctx, name)
		return err
	})
	return crd, err
}

func (m *migrator) count(ctx context.Context, p Plan) (int, error) {
	var page *objects
	err := m.retry(ctx, func() (err error) {
		page, err = m.server.list(ctx, p, 1, "")
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(page.Items) + int(ptr.Deref(page.RemainingItemCount, 0)), nil
}

// rewriteAll rewrites the objects of a CRD, and removes the older versions.
func (m *migrator) rewriteAll(ctx context.Context, p Plan, r *Result) {
	if r.Err = m.rewritePages(ctx, p, r); r.Done() {
		r.Err = m.prune(ctx, p)
		r.Pruned = r.Err == nil
	}
}

func (m *migrator) prune(ctx context.Context, p Plan) error {
	now, err := m.definition(ctx, p.of.Name)
	if err != nil {
		return err
	}
	patch, err := p.Prune(now)
	if err != nil {
		return err
	}
	return m.retry(ctx, func() error { return m.server.prune(ctx, p.of.Name, patch) })
}

// rewritePages returns the error that ended it before the last object.
func (m *migrator) rewritePages(ctx context.Context, p Plan, r *Result) error {
	streak := 0
	for token := ""; ; {
		page, err := m.page(ctx, p, token)
		if err != nil {
			return err
		}
		total := r.Objects + r.Failed + len(page.Items) + int(ptr.Deref(page.RemainingItemCount, 0))
		for _, object := range page.Items {
			name := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
			err := m.retry(ctx, func() error { return m.server.rewrite(ctx, p, name) })
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.add(name, err)
			if streak++; err == nil || final(err) {
				streak = 0
			}
			if streak == unanswered {
				return fmt.Errorf("%d objects in a row failed: %w", streak, err)
			}
		}
		m.options.Report(Progress{Result: *r, Total: total})
		if token = page.Continue; token == "" {
			return nil
		}
	}
}

// page lists the objects after a token, or after the one that the API server offers where it has expired.
func (m *migrator) page(ctx context.Context, p Plan, token string) (*objects, error) {
	var page *objects
	err := m.retry(ctx, func() (err error) {
		page, err = m.server.list(ctx, p, m.options.PageSize, token)
		if offered, ok := next(err); ok {
			page, err = m.server.list(ctx, p, m.options.PageSize, offered)
		}
		return err
	})
	return page, err
}

// add counts an object by the answer to its patch.
func (r *Result) add(object types.NamespacedName, err error) {
	if rewritten(err) {
		r.Objects++
		return
	}
	if r.Failed++; r.Failed <= named {
		r.Failures = append(r.Failures, Failure{Object: object, Err: err})
	}
}

// retry sends a request again while the API server does not answer it.
func (m *migrator) retry(ctx context.Context, send func() error) error {
	for attempt := 1; ; attempt++ {
		err := send()
		if err == nil || final(err) || attempt == attempts {
			return err
		}
		if stopped := m.pause(ctx, time.Second<<(attempt-1)); stopped != nil {
			return errors.Join(err, stopped)
		}
	}
}

// Err returns an error that names the CRDs and objects of which older versions are left, or nil.
func Err(results []Result) error {
	var all []error
	for _, r := range results {
		for _, f := range r.Failures {
			all = append(all, fmt.Errorf("rewrite %s %s: %w", r.CRD, f.Object, f.Err))
		}
		if more := r.Failed - len(r.Failures); more > 0 {
			all = append(all, fmt.Errorf("rewrite %d more objects of %s: failed", more, r.CRD))
		}
		if r.Err != nil {
			all = append(all, fmt.Errorf("migrate %s: %w", r.CRD, r.Err))
		}
	}
	return errors.Join(all...)
}

func (m *migrator) pause(ctx context.Context, d time.Duration) error {
	timer := m.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
