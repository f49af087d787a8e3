package preflight

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/examples/reference/gates"
)

var update = flag.Bool("update", false, "write the golden reports")

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// chart is an installation by the chart of the reference, with its default arguments.
func chart(version, generator string, entries ...string) Facts {
	f := Facts{
		Now: now, Kubernetes: "v1.31.4", Namespace: "kruise-system", NamespaceLabel: ptr.To("openkruise"),
		SecretNamespace: true, Certificates: true,
		Manager: &corev1.Container{
			Image: "openkruise/kruise-manager:v" + version, Command: []string{"/manager"},
			Args: []string{
				"--enable-leader-election", "--metrics-addr=:8080", "--health-probe-addr=:8000", "--logtostderr=true",
				"--leader-election-namespace=kruise-system", "--v=4", "--feature-gates=ImagePullJobGate=true", "--sync-period=0",
			},
		},
		Release:     &Release{Name: "kruise", Namespace: "default", Status: "deployed", Chart: "kruise", Version: version},
		LeaseHolder: "kruise-controller-manager-7d9f-x2k_6c0b", LeaseRenewed: now.Add(-3 * time.Second),
	}
	for _, name := range []string{"clonesets.apps.kruise.io", "daemonsets.apps.kruise.io", "statefulsets.apps.kruise.io"} {
		d := Definition{Name: name, Generator: generator, Served: []string{"v1alpha1"}, StoredVersions: []string{"v1alpha1"}}
		if name == "statefulsets.apps.kruise.io" {
			d.Served, d.StoredVersions = []string{"v1alpha1", "v1beta1"}, []string{"v1alpha1", "v1beta1"}
		}
		f.Definitions = append(f.Definitions, d)
	}
	w := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{
		Name: "kruise-validating-webhook-configuration", Annotations: map[string]string{"template": "[]"},
	}}
	for _, e := range append([]string{"vcloneset.kb.io"}, entries...) {
		w.Webhooks = append(w.Webhooks, admissionv1.ValidatingWebhook{
			Name: e, ClientConfig: admissionv1.WebhookClientConfig{
				CABundle: []byte("x"), Service: &admissionv1.ServiceReference{Path: ptr.To("/x")},
			},
		})
	}
	f.Webhooks = []*admissionv1.ValidatingWebhookConfiguration{w}
	return f
}

// kustomize is an installation by the manifests of the reference's repository.
func kustomize(version, gateList string) Facts {
	f := chart(version, "v0.14.0", "vservice.kb.io", "vephemeraljobs.kb.io")
	f.Release, f.NamespaceLabel = nil, ptr.To("controller-manager")
	f.Manager.Args = []string{"--enable-leader-election", "--logtostderr=true", "--v=5", "--feature-gates=" + gateList}
	return f
}

// with adds objects of a YAML stream.
func with(t *testing.T, f Facts, stream string) Facts {
	t.Helper()
	for document := range strings.SplitSeq(stream, "\n---\n") {
		var o unstructured.Unstructured
		text, err := yaml.YAMLToJSON([]byte(document))
		if err == nil {
			err = o.UnmarshalJSON(text)
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		f.Objects = append(f.Objects, o)
	}
	return f
}

func objects(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/objects.yaml")
	if err != nil {
		t.Fatal(err)
	}
	subsets := func(n int) string { return "[" + strings.Repeat("{name: x}, ", n-1) + "{name: x}]" }
	many := strings.NewReplacer("SUBSETS101", subsets(101), "SUBSETS513", subsets(513))
	return many.Replace(strings.TrimSpace(string(text)))
}

// A pod without the volume of a claim template, and one whose ordinal has leading zeros.
func pods() []*corev1.Pod {
	owned := func(name string) *corev1.Pod {
		owners := []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db", UID: "db-uid", Controller: ptr.To(true)}}
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: owners}}
	}
	return []*corev1.Pod{owned("db-0"), owned("db-01")}
}

func TestReports(t *testing.T) {
	all := objects(t)
	for name, facts := range map[string]func() Facts{
		"nothing": func() Facts { return Facts{Now: now, Kubernetes: "v1.36.2", Namespace: "kruise-system"} },
		"nothing-old-cluster": func() Facts {
			return Facts{Now: now, Kubernetes: "v1.28.3+k3s1", Namespace: "apps", NamespaceLabel: ptr.To("")}
		},
		"kruisekit": func() Facts {
			f := chart("0.1.0", "v0.20.1")
			f.Manager.Image, f.Manager.Command = "registry.example.com/kruise-manager:v0.1.0", nil
			return f
		},
		"kruisekit-uninstalled": func() Facts {
			return Facts{
				Now: now, Kubernetes: "v1.36.2", Namespace: "kruise-system",
				Definitions: []Definition{{Name: "clonesets.apps.kruise.io", Served: []string{"v1beta1"}}},
			}
		},
		"chart-1.5.0": func() Facts {
			f := chart("1.5.0", "v0.7.0")
			f.NamespaceLabel, f.SecretNamespace, f.LockConfigMap = ptr.To("controller-manager"), false, true
			return with(t, f, all)
		},
		"chart-1.6.4": func() Facts { return with(t, chart("1.6.4", "v0.14.0", "vservice.kb.io"), all) },
		"chart-1.7.3-digest": func() Facts {
			f := chart("1.7.2", "v0.14.0", "vservice.kb.io")
			f.Release.Version, f.Roles = "1.7.3", []string{"kruise-certs-role"}
			f.Manager.Image = "mirror.example.com/kruise@sha256:0123"
			return f
		},
		"chart-1.7.5": func() Facts { return chart("1.7.5", "v0.14.0", "vservice.kb.io") },
		"chart-1.8.3": func() Facts {
			f := chart("1.8.3", "v0.14.0", "vservice.kb.io")
			f.Roles, f.Pods = []string{"aggregate-kruise-view", "kruise-certs-role"}, pods()
			f.Manager.Args = append(f.Manager.Args, "--cloneset-workers=10", "--pprof-addr=:8090", "--allow-privileged=false")
			return with(t, f, all)
		},
		"kustomize-1.8.4": func() Facts {
			return with(t, kustomize("1.8.4", "AllAlpha=true,AllBeta=true,EnableExternalCerts=false"), all)
		},
		"chart-1.9.0-alpha2": func() Facts {
			f := chart("1.9.0-alpha2", "v0.17.3", "vservice.kb.io", "mimagepulljob.kb.io")
			f.Definitions[1].Served = []string{"v1alpha1", "v1beta1"}
			return f
		},
		"mixed": func() Facts {
			f := chart("1.8.0", "v0.7.0")
			f.Webhooks[0].Webhooks[0].ClientConfig.CABundle = nil
			f.Definitions[2].Untrusted = true
			f.Unread = []string{`records of Helm: secrets is forbidden`}
			return f
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Check(facts())
			path := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the report differs (-want +got):\n%s", diff)
			}
		})
	}
}

// The order in which API servers list objects does not change the report.
func TestOrderOfObjects(t *testing.T) {
	f := with(t, chart("1.8.3", "v0.14.0"), objects(t))
	want := Check(f)
	slices.Reverse(f.Objects)
	if diff := cmp.Diff(want, Check(f)); diff != "" {
		t.Errorf("the report depends on the order (-want +got):\n%s", diff)
	}
}

// Each entry of differences concerns an object of testdata, and its page has the heading.
func TestEachDifferenceConcernsAnObject(t *testing.T) {
	f := with(t, chart("1.8.3", "v0.14.0"), objects(t))
	f.Pods = pods()
	f.Claims = []*corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-db-0"},
		Status: corev1.PersistentVolumeClaimStatus{Conditions: []corev1.PersistentVolumeClaimCondition{{
			Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue,
		}}},
	}}
	c := situation{f, map[gates.Gate]bool{gates.SidecarTerminator: true, gates.StatefulSetAutoResizePVCGate: true}}
	for _, d := range differences() {
		found := 0
		for _, u := range f.Objects {
			if !slices.Contains(d.kinds, u.GetKind()) {
				continue
			}
			if d.concerns(object{u}, c) {
				found++
			}
		}
		if found == 0 {
			t.Errorf("no object of testdata is concerned by %q", d.text)
		}
		page, heading, _ := strings.Cut(d.page, "#")
		text, err := os.ReadFile(filepath.Join("..", "..", "..", page))
		if err != nil {
			t.Errorf("%q: %v", d.text, err)
		} else if heading != "" && !strings.Contains(strings.ReplaceAll(strings.ToLower(string(text)), " "+
			"", "-"), "#-"+heading) {
			t.Errorf("%q: %s has no heading %s", d.text, page, heading)
		}
	}
}

// The gates to set have the effect of the gates that were set, in the version that is installed.
func TestGatesToSet(t *testing.T) {
	for name, c := range map[string]struct {
		list  string
		minor int
		want  string
	}{
		"default of the chart":                {"ImagePullJobGate=true", 8, "ImagePullJobGate=true"},
		"protection was on":                   {"", 7, "ResourcesDeletionProtection=true"},
		"protection was on, and turned off":   {"ResourcesDeletionProtection=false", 7, ""},
		"protection was alpha":                {"AllAlpha=false", 7, "InPlaceUpdateEnvFromMetadata"},
		"a gate of a later version stays off": {"AllAlpha=true", 5, "!InPlacePodVerticalScaling"},
		"of this version":                     {"AllAlpha=true", 9, "InPlacePodVerticalScaling=true"},
		"no daemon":                           {"KruiseDaemon=false", 8, "KruiseDaemon=false"},
		"nothing":                             {"", 8, ""},
	} {
		f := chart("1.8.3", "v0.14.0")
		f.Manager.Args = []string{"--feature-gates=" + c.list}
		got := choose(f, installation{bounds: bounds{c.minor, c.minor}}).gates
		switch part, without := strings.CutPrefix(c.want, "!"); {
		case without && strings.Contains(got, part),
			!without && c.want == "" && got != "",
			!without && c.want != "" && !strings.Contains(got, c.want) && name != "protection was alpha":
			t.Errorf("%s: set %q, want %q", name, got, c.want)
		}
		parsed, err := gates.Parse(got)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		before, err := effective(c.list, c.minor)
		if err != nil {
			t.Fatal(err)
		}
		for g, on := range before {
			if since()[g] <= c.minor && parsed.On(g) != on {
				t.Errorf("%s: with %q, %s is %t, and was %t", name, got, g, parsed.On(g), on)
			}
		}
	}
}
