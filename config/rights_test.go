// Package config has no code: its directories are what an installation applies.
package config_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	created = admissionregistrationv1.Create
	updated = admissionregistrationv1.Update
	deleted = admissionregistrationv1.Delete
)

// Each right to write of our accounts is narrowed by a policy, or it is an exception with a reason. Else a stolen token
// has all of the right.
func TestRightsAreNarrowed(t *testing.T) {
	m := read(t)
	unused := exceptions()
	for _, r := range m.rights() {
		if m.narrowed(r, false) {
			continue
		}
		key := r.account + ": " + r.verb + " " + r.resource
		if m.narrowed(r, true) {
			key = "reserved: " + key
		}
		excepted := false
		for pattern := range exceptions() {
			if ok, _ := path.Match(pattern, key); ok {
				excepted = true
				delete(unused, pattern)
			}
		}
		if !excepted {
			t.Errorf("%s: no policy narrows %q", r.dir, key)
		}
	}
	for pattern := range unused {
		t.Errorf("the exception %q matches no right", pattern)
	}
}

// Roles that are aggregated to view, edit and admin have no kind with commands, outputs or Secrets of all namespaces:
// docs/security.md says that only administrators of the cluster read them.
func TestAggregatedRoles(t *testing.T) {
	aggregated := 0
	for name, role := range read(t).roles {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(role.labels)), func(label string) bool {
			return strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-")
		}) {
			continue
		}
		aggregated++
		for _, rule := range role.rules {
			for _, resource := range rule.Resources {
				kind, _, _ := strings.Cut(resource, "/")
				if slices.Contains([]string{"nodepodprobes", "resourcedistributions", "*"}, kind) {
					t.Errorf("%s may %v %s", name, rule.Verbs, resource)
				}
			}
		}
	}
	if aggregated == 0 {
		t.Error("no role is aggregated")
	}
}

// exceptions are the rights that no policy narrows, as patterns, and why. With "reserved: " a policy refuses the writes
// in the reserved namespaces.
func exceptions() map[string]string {
	return map[string]string{
		"reserved: kruise-manager: delete /pods":                    "WorkloadSpreads have pods of other workloads deleted",
		"reserved: kruise-manager: patch /pods/ephemeralcontainers": "EphemeralJobs select any pod",

		"kruise-manager: update /pods/finalizers":                    "owner references ask for it: it is not served",
		"kruise-manager: update apps.kruise.io/*/finalizers":         "owner references ask for it: it is not served",
		"kruise-manager: patch apps.kruise.io/*/status":              "the kinds are ours",
		"kruise-manager: patch policy.kruise.io/*/status":            "the kinds are ours",
		"kruise-manager: delete apps.kruise.io/*jobs":                "a job has a time to live, whoever created it",
		"kruise-manager: patch apps.kruise.io/*jobs":                 "finalizers",
		"kruise-manager: * apps.kruise.io/imagepulljobs":             "images are pulled before pods are updated",
		"kruise-manager: * apps.kruise.io/nodeimages":                "the kind is the manager's",
		"kruise-manager: * apps.kruise.io/nodepodprobes":             "the kind is the manager's",
		"kruise-manager: * apps.kruise.io/containerrecreaterequests": "finalizers, time to live, restarts of sidecars",
		"kruise-manager: * apps.kruise.io/persistentpodstates":       "annotations of StatefulSets ask for them",
		"kruise-manager: patch apps.kruise.io/podprobemarkers":       "finalizers",

		"kruise-manager: * /events*":                         "they change nothing",
		"kruise-manager: * /secrets in kruise-system":        "the namespace is the manager's",
		"kruise-manager: * /secrets in kruise-daemon-config": "the namespace is the manager's",
		"kruise-manager: * coordination.k8s.io/leases in *":  "the namespace is the manager's",

		"kruise-storage-migration: patch *.kruise.io/*/status":                                  "the kinds are ours",
		"kruise-storage-migration: patch apiextensions.k8s.io/customresourcedefinitions/status": "our kinds, by name",
	}
}

// right is one verb on one resource, as group/resource, with the namespace of a Role.
type right struct{ account, dir, verb, resource string }

// manifests are the objects of config.
type manifests struct {
	roles    map[string]role     // by namespace/name
	bound    map[string][]string // accounts by role
	policies []policy
	denied   map[string]bool // by policy: whether a binding denies what it refuses
}

type role struct {
	dir    string
	rules  []rbacv1.PolicyRule
	labels map[string]string
}

type policy struct {
	dir string
	admissionregistrationv1.ValidatingAdmissionPolicy
}

// rights are the rights to write of our accounts.
func (m manifests) rights() []right {
	var all []right
	for name, role := range m.roles {
		namespace, _, _ := strings.Cut(name, "/")
		for _, rule := range role.rules {
			for _, r := range expand(rule) {
				if namespace != "" {
					r.resource += " in " + namespace
				}
				for _, account := range m.bound[name] {
					r.account, r.dir = account, role.dir
					all = append(all, r)
				}
			}
		}
	}
	return all
}

func expand(rule rbacv1.PolicyRule) []right {
	var all []right
	for _, verb := range rule.Verbs {
		if _, writes := operations()[verb]; !writes {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				all = append(all, right{verb: verb, resource: group + "/" + resource})
			}
		}
	}
	return all
}

// operations are those of the verbs that write. A verb that is not here reads, or is a mark that policies ask for.
func operations() map[string][]admissionregistrationv1.OperationType {
	return map[string][]admissionregistrationv1.OperationType{
		"create": {created}, "update": {updated}, "patch": {updated}, "delete": {deleted}, "deletecollection": {deleted},
		"*": {created, updated, deleted},
	}
}

// narrowed reports whether a policy decides about the account and the right, everywhere or in some namespaces. The
// policy is one of config/default, or of the directory that grants the right.
func (m manifests) narrowed(r right, somewhere bool) bool {
	resource, _, _ := strings.Cut(r.resource, " in ")
	group, resource, _ := strings.Cut(resource, "/")
	for _, operation := range operations()[r.verb] {
		if !slices.ContainsFunc(m.policies, func(p policy) bool {
			return m.denied[p.Name] && slices.Contains([]string{"rbac", "daemon", r.dir}, p.dir) && decidesAbout(p, r.account) &&
				(somewhere || p.Spec.MatchConstraints.NamespaceSelector == nil) &&
				slices.ContainsFunc(p.Spec.MatchConstraints.ResourceRules,
					func(rule admissionregistrationv1.NamedRuleWithOperations) bool {
						return slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) &&
							slices.Contains(rule.Operations, operation)
					})
		}) {
			return false
		}
	}
	return true
}

func decidesAbout(p policy, account string) bool {
	conditions := p.Spec.MatchConditions
	return len(conditions) > 0 && strings.HasSuffix(conditions[0].Expression, ":"+account+"'")
}

// read reads the roles, bindings and policies of all directories.
func read(t *testing.T) manifests {
	t.Helper()
	m := manifests{roles: map[string]role{}, bound: map[string][]string{}, denied: map[string]bool{}}
	err := filepath.WalkDir(".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(file) != ".yaml" || strings.HasPrefix(file, "crd/") {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			m.add(t, file, document)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *manifests) add(t *testing.T, file string, document []byte) {
	t.Helper()
	var meta metav1.PartialObjectMetadata
	decode := func(into any) {
		if err := yaml.Unmarshal(document, into); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	decode(&meta)
	switch dir := path.Dir(file); meta.Kind {
	case "ClusterRole", "Role":
		var of rbacv1.ClusterRole
		decode(&of)
		name := meta.Namespace + "/" + meta.Name
		if _, ok := m.roles[name]; ok {
			t.Fatalf("%s: a second role %s", file, name)
		}
		m.roles[name] = role{dir, of.Rules, of.Labels}
	case "ClusterRoleBinding", "RoleBinding":
		var binding rbacv1.ClusterRoleBinding
		decode(&binding)
		name := meta.Namespace + "/" + binding.RoleRef.Name
		if binding.RoleRef.Kind == "ClusterRole" {
			name = "/" + binding.RoleRef.Name
		}
		for _, s := range binding.Subjects {
			m.bound[name] = append(m.bound[name], s.Name)
		}
	case "ValidatingAdmissionPolicyBinding":
		var of admissionregistrationv1.ValidatingAdmissionPolicyBinding
		decode(&of)
		m.denied[of.Spec.PolicyName] = slices.Contains(of.Spec.ValidationActions, admissionregistrationv1.Deny)
	case "ValidatingAdmissionPolicy":
		of := policy{dir: dir}
		decode(&of.ValidatingAdmissionPolicy)
		m.policies = append(m.policies, of)
	}
}
