package deletion

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/metrics"
	"github.com/kruisekit/kruisekit/protection"
)

const (
	// other stands in metrics for what is beyond a bound.
	other = "other"
	// longest is the length of a name or a user in metrics and records. A name of the API has 253 bytes at most.
	longest = 256
)

// Record is a refused deletion. Its JSON is a line of the audit log of the reference.
type Record struct {
	// Event is DeletionProtection.
	Event string
	Kind  string
	// Namespace is empty for a namespace, and for an object of the cluster.
	Namespace, Name string
	// UserAgent is the name of the user: the reference calls it so.
	UserAgent string
	// Code is the reason.
	Code protection.Code `json:"-"`

	group string
}

func newRecord(req admission.Request, o *object, v protection.Verdict) Record {
	return Record{
		Event: "DeletionProtection", Kind: req.Kind.Kind, Namespace: short(o.Namespace), Name: short(o.Name),
		UserAgent: short(req.UserInfo.Username), Code: v.Code, group: req.Kind.Group,
	}
}

func short(text string) string {
	if len(text) > longest {
		text = text[:longest]
	}
	return strings.ToValidUTF8(text, "?")
}

// meters count refusals; nil counts nothing.
type meters struct {
	all *prometheus.CounterVec
	// named are the metrics of the reference, whose labels name objects and users.
	namespaces, definitions, workloads *named
}

func newMeters(o Options) (*meters, error) {
	if o.Registerer == nil {
		return nil, nil //nolint:nilnil // count accepts nil
	}
	all, err := metrics.Register(o.Registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kruisekit_deletion_protection_refused_total",
		Help: "Deletions that the label policy.kruise.io/delete-protection refused, by group and kind of the object, " +
			"and by reason.",
	}, []string{"group", "kind", "code"}))
	m := &meters{all: all}
	add := func(into **named, vec *prometheus.CounterVec) {
		if err == nil {
			vec, err = metrics.Register(o.Registerer, vec)
			*into = &named{vec: vec, most: o.Series, seen: map[[2]string]bool{}}
		}
	}
	add(&m.namespaces, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "namespace_deletion_protection", Help: "Refused deletions of namespaces.",
	}, []string{"name", "username"}))
	add(&m.definitions, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crd_deletion_protection", Help: "Refused deletions of CustomResourceDefinitions.",
	}, []string{"name", "username"}))
	add(&m.workloads, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "workload_deletion_protection", Help: "Refused deletions of workloads.",
	}, []string{"kind_namespace_name", "username"}))
	return m, err
}

func (m *meters) count(r Record) {
	if m == nil {
		return
	}
	m.all.WithLabelValues(r.group, r.Kind, string(r.Code)).Inc()
	k, _ := protection.KindOf(r.group, r.Kind)
	switch {
	case k.Workload():
		m.workloads.inc(r.Kind+"_"+r.Namespace+"_"+r.Name, r.UserAgent)
	case r.Kind == "Namespace":
		m.namespaces.inc(r.Name, r.UserAgent)
	case r.Kind == "CustomResourceDefinition":
		m.definitions.inc(r.Name, r.UserAgent)
	}
}

// named is a metric whose labels are names. A client that creates objects and users does not make it grow without end.
type named struct {
	vec  *prometheus.CounterVec
	most int

	mu   sync.Mutex
	seen map[[2]string]bool
}

func (n *named) inc(object, user string) {
	n.mu.Lock()
	key := [2]string{object, user}
	if !n.seen[key] && len(n.seen) >= n.most {
		key = [2]string{other, other}
	} else {
		n.seen[key] = true
	}
	n.mu.Unlock()
	n.vec.WithLabelValues(key[0], key[1]).Inc()
}
