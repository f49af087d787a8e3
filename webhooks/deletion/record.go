package deletion

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/metrics"
	"github.com/kruisekit/kruisekit/protection"
)

// longest is the length of a name or a user in metrics and records. A name of the API has 253 bytes at most.
const longest = 256

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
	// The metrics of the reference have labels that name objects and users.
	namespaces, definitions, workloads *metrics.Named
}

func newMeters(registerer prometheus.Registerer) (*meters, error) {
	if registerer == nil {
		return nil, nil //nolint:nilnil // count accepts nil
	}
	all, err := metrics.Register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kruisekit_deletion_protection_refused_total",
		Help: "Deletions that the label policy.kruise.io/delete-protection refused, by group and kind of the object, " +
			"and by reason.",
	}, []string{"group", "kind", "code"}))
	namespaces, ofNamespaces := metrics.NewNamed(registerer, prometheus.CounterOpts{
		Name: "namespace_deletion_protection", Help: "Refused deletions of namespaces.",
	}, "name", "username")
	definitions, ofDefinitions := metrics.NewNamed(registerer, prometheus.CounterOpts{
		Name: "crd_deletion_protection", Help: "Refused deletions of CustomResourceDefinitions.",
	}, "name", "username")
	workloads, ofWorkloads := metrics.NewNamed(registerer, prometheus.CounterOpts{
		Name: "workload_deletion_protection", Help: "Refused deletions of workloads.",
	}, "kind_namespace_name", "username")
	return &meters{all, namespaces, definitions, workloads}, errors.Join(err, ofNamespaces, ofDefinitions, ofWorkloads)
}

func (m *meters) count(r Record) {
	if m == nil {
		return
	}
	m.all.WithLabelValues(r.group, r.Kind, string(r.Code)).Inc()
	k, _ := protection.KindOf(r.group, r.Kind)
	switch {
	case k.Workload():
		m.workloads.Inc(r.Kind+"_"+r.Namespace+"_"+r.Name, r.UserAgent)
	case r.Kind == "Namespace":
		m.namespaces.Inc(r.Name, r.UserAgent)
	case r.Kind == "CustomResourceDefinition":
		m.definitions.Inc(r.Name, r.UserAgent)
	}
}
