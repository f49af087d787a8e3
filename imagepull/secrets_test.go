package imagepull_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

const daemonNamespace = "kruise-daemon-config"

// copyOf a source in the namespace shop, with data as old as it is said to be.
func copyOf(source, name, data, users string, change ...func(*corev1.Secret)) *corev1.Secret {
	s := secret(daemonNamespace, name, corev1.SecretTypeDockerConfigJson, docker(data))
	s.Annotations = map[string]string{
		v1beta1.ImagePullSecretSourceKey: "shop/" + source, v1beta1.ImagePullSecretReferencesKey: users,
		v1beta1.ImagePullSecretModeKey: "batch",
	}
	for _, c := range change {
		c(s)
	}
	return s
}

// docker is a docker configuration that stands for a short text.
func docker(text string) string { return `{"auths":{"r":{"username":"` + text + `"}}}` }

func undocker(data []byte) string {
	return strings.TrimSuffix(strings.TrimPrefix(string(data), `{"auths":{"r":{"username":"`), `"}}}`)
}

func immutable(s *corev1.Secret) { s.Immutable = ptr.To(true) }
func legacy(s *corev1.Secret)    { delete(s.Annotations, v1beta1.ImagePullSecretModeKey) }

func story(p imagepull.CopyPlan) string {
	digits := regexp.MustCompile(`-[0-9a-f]{16}$`)
	var all []string
	add := func(what string, s *corev1.Secret) {
		all = append(all, what+" "+digits.ReplaceAllString(s.Name, "-*")+"="+undocker(s.Data[corev1.DockerConfigJsonKey])+
			"("+s.Annotations[v1beta1.ImagePullSecretReferencesKey]+")")
	}
	for _, s := range p.Delete {
		add("delete", s)
	}
	if p.Apply != nil {
		add("apply", p.Apply)
	}
	if r := p.Reference; r.Name != "" {
		all = append(all, strings.TrimSuffix("use "+digits.ReplaceAllString(r.Name, "-*")+" "+string(r.Mode), " "))
	}
	if p.Problem != nil {
		all = append(all, p.Problem.Code)
	}
	return strings.Join(all, "; ")
}

func TestPlanCopy(t *testing.T) {
	source := secret("shop", "s1", corev1.SecretTypeDockerConfigJson, docker("1"))
	dockercfg := secret("shop", "s1", corev1.SecretTypeDockercfg, "{}")
	terminating := func(s *corev1.Secret) { s.DeletionTimestamp = ago(0) }
	elsewhere := func(s *corev1.Secret) { s.Namespace = "shop" }
	for name, test := range map[string]struct {
		secret *corev1.Secret
		users  []string
		copies []*corev1.Secret
		want   string
	}{
		"no users":         {source, nil, nil, ""},
		"a new copy":       {source, list("shop/a"), nil, "apply s1-*=1(shop/a); use s1-* batch"},
		"users are sorted": {source, list("shop/b", "shop/a", "shop/b"), nil, "apply s1-*=1(shop/a,shop/b); use s1-* batch"},
		"a copy that fits": {source, list("shop/a"), list(copyOf("s1", "s1-a", "1", "shop/a")), "use s1-a batch"},
		"other users": {
			source, list("shop/a"), list(copyOf("s1", "s1-a", "1", "shop/a, shop/b")), "apply s1-a=1(shop/a); use s1-a batch",
		},
		"other data": {
			source, list("shop/a"), list(copyOf("s1", "s1-a", "0", "shop/a")), "apply s1-a=1(shop/a); use s1-a batch",
		},
		"without a mode": {source, list("shop/a"), list(copyOf("s1", "s1-a", "1", "shop/a", legacy)), "use s1-a"},
		"several": {
			secret: source,
			users:  list("shop/a"),
			copies: list(copyOf("s1", "s1-b", "1", ""), copyOf("s1", "s1-a", "1", "shop/a")),
			want:   "delete s1-b=1(); use s1-a batch",
		},
		"several without users": {
			secret: source,
			copies: list(copyOf("s1", "s1-b", "1", ""), copyOf("s1", "s1-a", "1", "shop/a")),
			want:   "delete s1-a=1(shop/a); delete s1-b=1()",
		},
		"copies of others, or elsewhere, or terminating": {
			secret: source,
			users:  list("shop/a"),
			copies: list(nil, copyOf("s2", "s1-a", "1", "shop/a"), copyOf("s1", "s1-b", "1", "shop/a", elsewhere),
				copyOf("s1", "s1-c", "1", "shop/a", terminating)),
			want: "apply s1-*=1(shop/a); use s1-* batch",
		},
		"immutable, and old": {
			secret: source,
			users:  list("shop/a"),
			copies: list(copyOf("s1", "s1-a", "0", "shop/a", immutable)),
			want:   "delete s1-a=0(shop/a); apply s1-a=1(shop/a); use s1-a batch",
		},
		"immutable, with other users": {
			source, list("shop/a"), list(copyOf("s1", "s1-a", "1", "", immutable)), "apply s1-a=1(shop/a); use s1-a batch",
		},
		"another type": {
			secret: dockercfg,
			users:  list("shop/a"),
			copies: list(copyOf("s1", "s1-a", "0", "shop/a")),
			want:   "delete s1-a=0(shop/a); apply s1-a=(shop/a); use s1-a batch",
		},
		"no source": {nil, list("shop/a"), list(copyOf("s1", "s1-a", "1", "shop/a")), imagepull.NoteNoSecret},
		"no docker configuration": {
			secret("shop", "s1", corev1.SecretTypeOpaque, "key"), list("shop/a"), nil, imagepull.NoteBadSecret,
		},
		"malformed": {
			secret: secret("shop", "s1", corev1.SecretTypeDockerConfigJson, "["),
			users:  list("shop/a"),
			copies: list(copyOf("s1", "s1-a", "0", "shop/a")),
			want:   imagepull.NoteBadSecret,
		},
		"too long": {
			secret: secret("shop", "s1", corev1.SecretTypeDockerConfigJson, docker(strings.Repeat("x", 64<<10))),
			users:  list("shop/a"),
			want:   imagepull.NoteBadSecret,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := imagepull.CopyInput{
				Source: types.NamespacedName{Namespace: "shop", Name: "s1"}, Secret: test.secret, Users: test.users,
				Copies: test.copies,
			}
			before := jsonOf(in)
			plan := imagepull.PlanCopy(in)
			if jsonOf(in) != before {
				t.Error("the input has changed")
			}
			if diff := cmp.Diff(test.want, story(plan)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if plan.Apply != nil {
				in.Copies = list(plan.Apply)
				if again := imagepull.PlanCopy(in); again.Apply != nil || len(again.Delete) > 0 {
					t.Errorf("after the plan was applied: %s", story(again))
				}
			}
		})
	}
}

// Of a source its type and docker configuration are copied, and nothing else.
func TestCopyIsPlain(t *testing.T) {
	name := strings.Repeat("a", 245) + "." + strings.Repeat("b", 7)
	source := secret("shop", name, corev1.SecretTypeDockercfg, "{}")
	source.Data["other"] = []byte("stays")
	source.Labels, source.Annotations = map[string]string{"a": "b"}, map[string]string{
		corev1.LastAppliedConfigAnnotation: "x",
	}
	source.Immutable, source.Finalizers, source.CreationTimestamp = ptr.To(true), []string{"a/b"}, *ago(time.Hour)
	got := imagepull.PlanCopy(imagepull.CopyInput{
		Source: types.NamespacedName{Namespace: "shop", Name: name}, Secret: source, Namespace: "elsewhere",
		Users: list("shop/a"),
	}).Apply
	want := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: got.Name, Annotations: map[string]string{
			"imagepulljobs.kruise.io/source-key": "shop/" + name,
			"imagepulljobs.kruise.io/references": "shop/a",
			"imagepulljobs.kruise.io/mode":       "batch",
		}},
		Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: []byte("{}")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
	got.Data[corev1.DockerConfigKey][0] = '['
	if string(source.Data[corev1.DockerConfigKey]) != "{}" {
		t.Error("the copy shares memory with its source")
	}
	if faults := validation.IsDNS1123Subdomain(got.Name); len(faults) > 0 {
		t.Errorf("%s: %v", got.Name, faults)
	}
}

// A job uses no more secrets than it may name.
func TestSecretsAreLimited(t *testing.T) {
	job := pullJob("a", "nginx")
	for i := range 100 {
		job.Spec.PullSecrets = append(job.Spec.PullSecrets, fmt.Sprintf("s%d", i%50))
	}
	if names := imagepull.PullSecretsOf(job); len(names) != imagepull.MaxPullSecrets {
		t.Errorf("%d secrets", len(names))
	}
}

// A secret is for pulls of those who brought it.
func TestMayUse(t *testing.T) {
	at := func(namespace string) func(*corev1.Secret) {
		return func(s *corev1.Secret) { s.Annotations, s.Namespace = nil, namespace }
	}
	of := func(namespace string, names ...string) v1beta1.ImageTagSpec {
		t := v1beta1.ImageTagSpec{Tag: "1"}
		for _, name := range names {
			o := owner(name)
			o.Namespace = namespace
			t.OwnerReferences = append(t.OwnerReferences, o)
		}
		return t
	}
	for name, test := range map[string]struct {
		secret      *corev1.Secret
		tag         v1beta1.ImageTagSpec
		now, coming bool
	}{
		"a copy is for the job that refers to it": {copyOf("s", "c", "1", "shop/a"), of("shop", "a"), true, true},
		"also where others pull the same": {
			secret: copyOf("s", "c", "1", "shop/a,shop/b"), tag: of("shop", "x", "b"), now: true, coming: true,
		},
		"another tenant's job does not log in with it":  {secret: copyOf("s", "c", "1", "shop/a"), tag: of("other", "a")},
		"another job of the namespace must ask for it":  {copyOf("s", "c", "1", "shop/a"), of("shop", "b"), false, true},
		"a copy of an old release is for its namespace": {copyOf("s", "c", "1", ""), of("shop", "b"), true, true},
		"and not for others":                            {copyOf("s", "c", "1", ""), of("other", "b"), false, false},
		"a secret that is no copy is for its namespace": {
			secret: copyOf("s", "c", "1", "", at("home")), tag: of("home", "b"), now: true, coming: true,
		},
		"other namespaces have none of it": {
			secret: copyOf("s", "c", "1", "", at("home")), tag: of("shop", "b"),
		},
		"what an administrator wrote is without a job": {copyOf("s", "c", "1", "shop/a"), of("shop"), true, false},
		"an owner of another kind is as good as none": {
			secret: copyOf("s", "c", "1", "shop/a"),
			tag: v1beta1.ImageTagSpec{OwnerReferences: []corev1.ObjectReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Namespace: "other",
			}}},
			now: true,
		},
		"a name is not taken for the beginning of another": {copyOf("s", "c", "1", "shop/aa"), of("shop", "a"), false, true},
		"nor a namespace for the end of another one's name": {
			secret: copyOf("s", "c", "1", "shop/a"), tag: of("p/shop", "a"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if now, coming := imagepull.MayUse(test.secret, test.tag),
				imagepull.MayComeToUse(test.secret, test.tag); now != test.now || coming != test.coming {
				t.Errorf("now %t, later %t", now, coming)
			}
		})
	}
}
