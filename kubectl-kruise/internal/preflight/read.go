package preflight

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
)

// reader collects facts. What cannot be read is one of them.
type reader struct {
	target.Command
	dynamic dynamic.Interface
	facts   Facts
}

// Read collects the facts of a cluster.
func Read(c target.Command, namespace string, now time.Time) (Facts, error) {
	discovery, err := c.Factory.ToDiscoveryClient()
	if err != nil {
		return Facts{}, fmt.Errorf("make discovery client: %w", err)
	}
	version, err := discovery.ServerVersion()
	if err != nil {
		return Facts{}, fmt.Errorf("ask the API server's version: %w", err)
	}
	client, err := c.Factory.DynamicClient()
	if err != nil {
		return Facts{}, fmt.Errorf("make client: %w", err)
	}
	r := &reader{c, client, Facts{Now: now, Kubernetes: version.GitVersion, Namespace: namespace}}
	r.namespaces()
	r.manager()
	r.release()
	r.webhooks()
	r.definitions()
	r.pods()
	return r.facts, nil
}

// note keeps what could not be read.
func (r *reader) note(what string, err error) {
	if err != nil && !apierrors.IsNotFound(err) {
		r.facts.Unread = append(r.facts.Unread, what+": "+err.Error())
	}
}

// get returns an object; nil without one, and for one that cannot be read.
func get[T any](r *reader, what string, kind schema.GroupKind, key types.NamespacedName) *T {
	o, err := r.Get(kind, key.Namespace, key.Name)
	var into *T
	if err == nil {
		into, err = kinds.Read[T](o.Unstructured)
	}
	r.note(what, err)
	return into
}

// list returns the objects of a kind that can be read.
func list[T any](r *reader, what string, kind schema.GroupKind, o listed) []*T {
	all, err := kinds.ReadAll[T](r.List(kind, o.namespace, o.ListOptions))
	r.note(what, err)
	return all
}

// listed are the objects of a namespace, or of all, that options select.
type listed struct {
	namespace string
	metav1.ListOptions
}

func core(kind string) schema.GroupKind { return schema.GroupKind{Kind: kind} }

func (r *reader) namespaces() {
	namespaceOf := func(what, name string) *corev1.Namespace {
		return get[corev1.Namespace](r, what, core("Namespace"), types.NamespacedName{Name: name})
	}
	if namespace := namespaceOf("namespace", r.facts.Namespace); namespace != nil {
		label := namespace.Labels["control-plane"]
		r.facts.NamespaceLabel = &label
	}
	r.facts.SecretNamespace = namespaceOf("namespace of pull secrets", "kruise-daemon-config") != nil
	r.facts.Certificates = get[corev1.Secret](r, "certificates", core("Secret"), r.in("kruise-webhook-certs")) != nil
	for _, name := range []string{"aggregate-kruise-view", "kruise-certs-role"} {
		kind := schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRole"}
		if get[rbacv1.ClusterRole](r, "role "+name, kind, types.NamespacedName{Name: name}) != nil {
			r.facts.Roles = append(r.facts.Roles, name)
		}
	}
}

// in returns the key of an object in the namespace of the manager.
func (r *reader) in(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: r.facts.Namespace, Name: name}
}

func (r *reader) manager() {
	kind := schema.GroupKind{Group: appsv1.GroupName, Kind: kinds.Deployment}
	if d := get[appsv1.Deployment](r, "manager", kind, r.in("kruise-controller-manager")); d != nil {
		r.facts.Manager = &corev1.Container{}
		if containers := d.Spec.Template.Spec.Containers; len(containers) > 0 {
			r.facts.Manager = &containers[0]
		}
	}
	kind = schema.GroupKind{Group: coordinationv1.GroupName, Kind: "Lease"}
	lease := get[coordinationv1.Lease](r, "lease", kind, r.in("kruise-manager"))
	if lease != nil && lease.Spec.HolderIdentity != nil && lease.Spec.RenewTime != nil {
		r.facts.LeaseHolder, r.facts.LeaseRenewed = *lease.Spec.HolderIdentity, lease.Spec.RenewTime.Time
	}
	r.facts.LockConfigMap = get[corev1.ConfigMap](r, "lock", core("ConfigMap"), r.in("kruise-manager")) != nil
}

// release finds the newest record of Helm whose chart is the reference's, in any namespace.
func (r *reader) release() {
	latest := 0
	for _, s := range list[corev1.Secret](r, "records of Helm", core("Secret"), listed{ListOptions: metav1.ListOptions{
		LabelSelector: "owner=helm", FieldSelector: "type=helm.sh/release.v1",
	}}) {
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
	unpacked, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(data)))
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

func (r *reader) webhooks() {
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		for _, c := range list[admissionv1.ValidatingWebhookConfiguration](r, "webhooks",
			schema.GroupKind{Group: admissionv1.GroupName, Kind: kind}, listed{}) {
			if strings.HasPrefix(c.Name, "kruise-") {
				r.facts.Webhooks = append(r.facts.Webhooks, c)
			}
		}
	}
}

// definitions reads the CRDs, and their objects in the version that they store.
func (r *reader) definitions() {
	kind := schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}
	for _, crd := range list[apiextensionsv1.CustomResourceDefinition](r, "definitions", kind, listed{}) {
		if crd.Spec.Group != kinds.Apps && crd.Spec.Group != kinds.Policy {
			continue
		}
		d := Definition{
			Name: crd.Name, Generator: crd.Annotations["controller-gen.kubebuilder.io/version"],
			StoredVersions: crd.Status.StoredVersions,
		}
		resource := schema.GroupVersionResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
		for _, v := range crd.Spec.Versions {
			if v.Served {
				d.Served = append(d.Served, v.Name)
			}
			if v.Storage {
				resource.Version = v.Name
			}
		}
		if c := crd.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter && c.Webhook != nil {
			d.Untrusted = c.Webhook.ClientConfig == nil || len(c.Webhook.ClientConfig.CABundle) == 0
		}
		if objects, err := r.dynamic.Resource(resource).List(r.Context(), metav1.ListOptions{}); err != nil {
			d.ReadError = err.Error()
		} else {
			r.facts.Objects = append(r.facts.Objects, objects.Items...)
		}
		r.facts.Definitions = append(r.facts.Definitions, d)
	}
}

// pods reads the pods and claims of namespaces with Advanced StatefulSets, some of which differ by what their pods are.
func (r *reader) pods() {
	var namespaces []string
	for _, o := range r.facts.Objects {
		if o.GetKind() == kinds.StatefulSet && !slices.Contains(namespaces, o.GetNamespace()) {
			namespaces = append(namespaces, o.GetNamespace())
		}
	}
	for _, namespace := range namespaces {
		in := listed{namespace: namespace}
		r.facts.Pods = append(r.facts.Pods, list[corev1.Pod](r, "pods of "+namespace, core("Pod"), in)...)
		r.facts.Claims = append(r.facts.Claims,
			list[corev1.PersistentVolumeClaim](r, "claims of "+namespace, core("PersistentVolumeClaim"), in)...)
	}
}
