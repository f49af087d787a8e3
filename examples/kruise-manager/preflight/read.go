package preflight

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	managerName = "kruise-controller-manager"
	daemonName  = "kruise-daemon"
	page        = 500
)

// reader collects facts. What cannot be read is one of them.
type reader struct {
	client client.Client
	facts  Facts
}

// Read collects the facts of a cluster.
func Read(ctx context.Context, rc *rest.Config, namespace string, now time.Time) (Facts, error) {
	rc = rest.CopyConfig(rc)
	rc.UserAgent = "kruise-manager-" + Command
	d, err := discovery.NewDiscoveryClientForConfig(rc)
	if err != nil {
		return Facts{}, fmt.Errorf("make discovery client: %w", err)
	}
	version, err := d.ServerVersion()
	if err != nil {
		return Facts{}, fmt.Errorf("ask the API server's version: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := addTo(scheme); err != nil {
		return Facts{}, fmt.Errorf("make scheme: %w", err)
	}
	c, err := client.New(rc, client.Options{Scheme: scheme})
	if err != nil {
		return Facts{}, fmt.Errorf("make client: %w", err)
	}
	r := reader{client: c, facts: Facts{Now: now, Kubernetes: version.GitVersion, Namespace: namespace}}
	r.all(ctx)
	return r.facts, nil
}

func addTo(scheme *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme,
		apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) all(ctx context.Context) {
	r.namespaces(ctx)
	r.programs(ctx)
	r.release(ctx)
	r.lock(ctx)
	r.webhooks(ctx)
	r.definitions(ctx)
}

// note keeps what could not be read. It reports whether a read has an answer.
func (r *reader) note(what string, err error) bool {
	if client.IgnoreNotFound(err) != nil {
		r.facts.Unread = append(r.facts.Unread, what+": "+err.Error())
	}
	return err == nil
}

func (r *reader) namespaces(ctx context.Context) {
	var namespace corev1.Namespace
	if r.note("namespace", r.client.Get(ctx, client.ObjectKey{Name: r.facts.Namespace}, &namespace)) {
		label := namespace.Labels["control-plane"]
		r.facts.NamespaceLabel = &label
	}
	r.facts.SecretNamespace = r.note("namespace of pull secrets",
		r.client.Get(ctx, client.ObjectKey{Name: "kruise-daemon-config"}, &namespace))
	r.facts.Certificates = r.note("certificates", r.client.Get(ctx,
		client.ObjectKey{Namespace: r.facts.Namespace, Name: "kruise-webhook-certs"}, &corev1.Secret{}))
	for _, name := range []string{"aggregate-kruise-view", "kruise-certs-role"} {
		if r.note("role "+name, r.client.Get(ctx, client.ObjectKey{Name: name}, &rbacv1.ClusterRole{})) {
			r.facts.Roles = append(r.facts.Roles, name)
		}
	}
}

func (r *reader) programs(ctx context.Context) {
	var deployment appsv1.Deployment
	key := client.ObjectKey{Namespace: r.facts.Namespace, Name: managerName}
	if r.note("manager", r.client.Get(ctx, key, &deployment)) {
		r.facts.Manager = programOf("Deployment", deployment.Name, deployment.Spec.Replicas, deployment.Spec.Template.Spec)
	}
	var daemons appsv1.DaemonSet
	key.Name = daemonName
	if r.note("daemon", r.client.Get(ctx, key, &daemons)) {
		r.facts.Daemon = programOf("DaemonSet", daemons.Name, nil, daemons.Spec.Template.Spec)
	}
}

func programOf(kind, name string, replicas *int32, spec corev1.PodSpec) *Program {
	p := &Program{Kind: kind, Name: name}
	if replicas != nil {
		p.Replicas = *replicas
	}
	if len(spec.Containers) > 0 {
		c := spec.Containers[0]
		p.Image, p.Command, p.Args = c.Image, c.Command, c.Args
	}
	return p
}

// release finds the newest record of Helm whose chart is the reference's, in any namespace.
func (r *reader) release(ctx context.Context) {
	var secrets corev1.SecretList
	if !r.note("records of Helm", r.client.List(ctx, &secrets, client.MatchingLabels{"owner": "helm"},
		client.MatchingFields{"type": "helm.sh/release.v1"})) {
		return
	}
	latest := 0
	for _, s := range secrets.Items {
		revision, _ := strconv.Atoi(s.Labels["version"])
		found, err := decode(s.Data["release"])
		if err != nil || found.Chart != "kruise" && found.Chart != "kruisekit" || revision < latest {
			continue
		}
		latest = revision
		found.Namespace = s.Namespace
		r.facts.Release = found
	}
}

// decode reads a record: base64 of gzip of JSON.
func decode(data []byte) (*Release, error) {
	packed, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		return nil, err
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	var record struct {
		Name  string
		Info  struct{ Status string }
		Chart struct {
			Metadata struct{ Name, Version string }
		}
	}
	if err := json.NewDecoder(unpacked).Decode(&record); err != nil {
		return nil, err
	}
	return &Release{
		Name: record.Name, Status: record.Info.Status,
		Chart: record.Chart.Metadata.Name, Version: record.Chart.Metadata.Version,
	}, nil
}

func (r *reader) lock(ctx context.Context) {
	key := client.ObjectKey{Namespace: r.facts.Namespace, Name: "kruise-manager"}
	var lease coordinationv1.Lease
	if r.note("lease", r.client.Get(ctx, key, &lease)) && lease.Spec.HolderIdentity != nil && lease.Spec.RenewTime != nil {
		r.facts.LeaseHolder, r.facts.LeaseRenewed = *lease.Spec.HolderIdentity, lease.Spec.RenewTime.Time
	}
	r.facts.LockConfigMap = r.note("lock", r.client.Get(ctx, key, &corev1.ConfigMap{}))
}

func (r *reader) webhooks(ctx context.Context) {
	const annotation = "template"
	var mutating admissionv1.MutatingWebhookConfigurationList
	if r.note("webhooks", r.client.List(ctx, &mutating)) {
		for _, c := range mutating.Items {
			w := Webhooks{Name: c.Name, Template: c.Annotations[annotation] != ""}
			for _, e := range c.Webhooks {
				w.Entries = append(w.Entries, entryOf(e.Name, e.ClientConfig))
			}
			r.configuration(w)
		}
	}
	var validating admissionv1.ValidatingWebhookConfigurationList
	if r.note("webhooks", r.client.List(ctx, &validating)) {
		for _, c := range validating.Items {
			w := Webhooks{Name: c.Name, Validating: true, Template: c.Annotations[annotation] != ""}
			for _, e := range c.Webhooks {
				w.Entries = append(w.Entries, entryOf(e.Name, e.ClientConfig))
			}
			r.configuration(w)
		}
	}
}

func (r *reader) configuration(w Webhooks) {
	if strings.HasPrefix(w.Name, "kruise-") {
		r.facts.Webhooks = append(r.facts.Webhooks, w)
	}
}

func entryOf(name string, c admissionv1.WebhookClientConfig) Entry {
	e := Entry{Name: name, Trusted: len(c.CABundle) > 0}
	if c.Service != nil && c.Service.Path != nil {
		e.Path = *c.Service.Path
	}
	return e
}

func (r *reader) definitions(ctx context.Context) {
	var all apiextensionsv1.CustomResourceDefinitionList
	if !r.note("definitions", r.client.List(ctx, &all)) {
		return
	}
	for _, crd := range all.Items {
		if crd.Spec.Group != "apps.kruise.io" && crd.Spec.Group != "policy.kruise.io" {
			continue
		}
		d := Definition{
			Name: crd.Name, Generator: crd.Annotations["controller-gen.kubebuilder.io/version"],
			StoredVersions: crd.Status.StoredVersions,
		}
		kind := schema.GroupVersionKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.ListKind}
		for _, v := range crd.Spec.Versions {
			if v.Served {
				d.Served = append(d.Served, v.Name)
			}
			if v.Storage {
				kind.Version = v.Name
			}
		}
		if c := crd.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter && c.Webhook != nil {
			d.Converted = true
			d.Trusted = c.Webhook.ClientConfig != nil && len(c.Webhook.ClientConfig.CABundle) > 0
		}
		before := len(r.facts.Objects)
		if err := r.objects(ctx, kind); err != nil {
			d.ReadError = err.Error()
		}
		d.Objects = len(r.facts.Objects) - before
		r.facts.Definitions = append(r.facts.Definitions, d)
	}
	r.pods(ctx)
}

// objects reads all objects of a kind, in pages.
func (r *reader) objects(ctx context.Context, kind schema.GroupVersionKind) error {
	for next := ""; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := r.client.List(ctx, list, client.Limit(page), client.Continue(next)); err != nil {
			if meta.IsNoMatchError(err) {
				return errors.New("no API server serves it yet")
			}
			return err
		}
		r.facts.Objects = append(r.facts.Objects, list.Items...)
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// pods reads the pods and claims of namespaces with Advanced StatefulSets, some of which differ by what their pods are.
func (r *reader) pods(ctx context.Context) {
	var namespaces []string
	for _, o := range r.facts.Objects {
		if o.GetKind() == "StatefulSet" && !slices.Contains(namespaces, o.GetNamespace()) {
			namespaces = append(namespaces, o.GetNamespace())
		}
	}
	for _, namespace := range namespaces {
		for next := ""; ; {
			var list corev1.PodList
			if !r.note("pods of "+namespace, r.client.List(ctx, &list, client.InNamespace(namespace), client.Limit(page),
				client.Continue(next))) {
				break
			}
			r.facts.Pods = append(r.facts.Pods, list.Items...)
			if next = list.Continue; next == "" {
				break
			}
		}
		var claims corev1.PersistentVolumeClaimList
		if r.note("claims of "+namespace, r.client.List(ctx, &claims, client.InNamespace(namespace))) {
			r.facts.Claims = append(r.facts.Claims, claims.Items...)
		}
	}
}
