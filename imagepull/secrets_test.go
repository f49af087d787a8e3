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
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

const daemonNamespace = "kruise-daemon-config"

func wants(names ...string) func(*v1beta1.ImagePullJob) {
	return func(j *v1beta1.ImagePullJob) { j.Spec.PullSecrets = names }
}

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

func story(p imagepull.ClaimPlan) string {
	digits := regexp.MustCompile(`-[0-9a-f]{6}$`)
	var all []string
	add := func(what string, secrets []*corev1.Secret) {
		for _, s := range secrets {
			all = append(all, what+" "+digits.ReplaceAllString(s.Name, "-*")+"="+undocker(s.Data[corev1.DockerConfigJsonKey])+
				"("+s.Annotations[v1beta1.ImagePullSecretReferencesKey]+")")
		}
	}
	add("delete", p.Delete)
	add("update", p.Update)
	add("create", p.Create)
	for _, r := range p.References {
		all = append(all, strings.TrimSuffix("use "+digits.ReplaceAllString(r.Name, "-*")+" "+string(r.Mode), " "))
	}
	return strings.Join(all, "; ")
}

func TestSecrets(t *testing.T) {
	source := func(name, data string) *corev1.Secret {
		return secret("shop", name, corev1.SecretTypeDockerConfigJson, docker(data))
	}
	s1 := list(source("s1", "1"))
	for name, test := range map[string]struct {
		job     []func(*v1beta1.ImagePullJob)
		sources []*corev1.Secret
		copies  []*corev1.Secret
		want    string
		notes   string
	}{
		"no secrets":  {nil, nil, nil, "", ""},
		"a new copy":  {list(wants("s1")), s1, nil, "create s1-*=1(shop/a); use s1-* batch", ""},
		"named twice": {list(wants("s1", "s1")), s1, nil, "create s1-*=1(shop/a); use s1-* batch", ""},
		"two, in the job's order": {
			job:     list(wants("s2", "s1")),
			sources: list(source("s1", "1"), source("s2", "2")),
			want:    "create s2-*=2(shop/a); create s1-*=1(shop/a); use s2-* batch; use s1-* batch",
		},
		"a copy that fits": {list(wants("s1")), s1, list(copyOf("s1", "s1-a", "1", "shop/a")), "use s1-a batch", ""},
		"a copy of another job": {
			job:     list(wants("s1")),
			sources: s1,
			copies:  list(copyOf("s1", "s1-a", "1", "shop/b")),
			want:    "update s1-a=1(shop/a,shop/b); use s1-a batch",
		},
		"users are sorted": {
			job:     list(wants("s1")),
			sources: s1,
			copies:  list(copyOf("s1", "s1-a", "1", " shop/z, ,shop/b,shop/z")),
			want:    "update s1-a=1(shop/a,shop/b,shop/z); use s1-a batch",
		},
		"other data": {
			job:     list(wants("s1")),
			sources: s1,
			copies:  list(copyOf("s1", "s1-a", "0", "shop/a,shop/b")),
			want:    "update s1-a=1(shop/a,shop/b); use s1-a batch",
		},
		"a copy without a mode": {list(wants("s1")), s1, list(copyOf("s1", "s1-a", "1", "shop/a", legacy)), "use s1-a", ""},
		"several, none is used": {
			job:     list(wants("s1")),
			sources: s1,
			copies:  list(copyOf("s1", "s1-b", "1", ""), copyOf("s1", "s1-a", "1", "shop/b")),
			want:    "update s1-a=1(shop/a,shop/b); use s1-a batch",
		},
		"several, some are used": {
			job:     list(wants("s1")),
			sources: s1,
			copies: list(copyOf("s1", "s1-d", "1", "shop/b"), copyOf("s1", "s1-c", "1", "shop/a"),
				copyOf("s1", "s1-b", "1", "shop/a"), copyOf("s1", "s1-a", "1", "")),
			want: "use s1-c batch",
		},
		"terminating copies": {
			job:     list(wants("s1")),
			sources: s1,
			copies:  list(copyOf("s1", "s1-a", "1", "shop/a", func(s *corev1.Secret) { s.DeletionTimestamp = ago(0) })),
			want:    "create s1-*=1(shop/a); use s1-* batch",
		},
		"copies elsewhere": {
			job:     list(wants("s1")),
			sources: s1,
			copies:  list(nil, copyOf("s1", "s1-a", "1", "shop/a", func(s *corev1.Secret) { s.Namespace = "shop" })),
			want:    "create s1-*=1(shop/a); use s1-* batch",
		},
		"a namesake's copy": {
			job:     list(wants("s1")),
			sources: s1,
			copies: list(copyOf("s1", "s1-a", "1", "other/a", func(s *corev1.Secret) {
				s.Annotations[v1beta1.ImagePullSecretSourceKey] = "other/s1"
			})),
			want: "create s1-*=1(shop/a); use s1-* batch",
		},
		"immutable, and old": {
			job:     list(wants("s1")),
			sources: s1,
			copies:  list(copyOf("s1", "s1-a", "0", "shop/a,shop/b", immutable)),
			want:    "delete s1-a=0(shop/a,shop/b); create s1-*=1(shop/a,shop/b); use s1-* batch",
		},
		"immutable, and fresh": {
			job:     list(wants("s1")),
			sources: s1,
			copies:  list(copyOf("s1", "s1-a", "1", "shop/b", immutable)),
			want:    "update s1-a=1(shop/a,shop/b); use s1-a batch",
		},
		"another type": {
			job:     list(wants("s1")),
			sources: list(secret("shop", "s1", corev1.SecretTypeDockercfg, "{}")),
			copies:  list(copyOf("s1", "s1-a", "0", "shop/a")),
			want:    "delete s1-a=0(shop/a); create s1-*=(shop/a); use s1-* batch",
		},
		"no source": {
			job:     list(wants("s1", "s2")),
			sources: s1,
			copies:  list(copyOf("s2", "s2-a", "1", "shop/a")),
			want:    "create s1-*=1(shop/a); use s1-* batch",
			notes:   "SecretMissing shop/s2",
		},
		"a secret that is no docker configuration stays where it is": {
			job:     list(wants("s1")),
			sources: list(secret("shop", "s1", corev1.SecretTypeOpaque, "key")),
			notes:   "SecretUnusable shop/s1",
		},
		"an earlier copy of such a secret is released": {
			job:     list(wants("s1")),
			sources: list(secret("shop", "s1", corev1.SecretTypeOpaque, "key")),
			copies:  list(copyOf("s1", "s1-a", "1", "shop/a", func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque })),
			want:    "delete s1-a=1(shop/a)",
			notes:   "SecretUnusable shop/s1",
		},
		"a malformed secret is skipped, the others are copied": {
			job:     list(wants("s0", "s1")),
			sources: list(secret("shop", "s0", corev1.SecretTypeDockerConfigJson, "["), source("s1", "1")),
			want:    "create s1-*=1(shop/a); use s1-* batch",
			notes:   "SecretUnusable shop/s0",
		},
		"a secret that becomes malformed leaves its copy as it is": {
			job:     list(wants("s1")),
			sources: list(secret("shop", "s1", corev1.SecretTypeDockerConfigJson, "[")),
			copies:  list(copyOf("s1", "s1-a", "1", "shop/a")),
			notes:   "SecretUnusable shop/s1",
		},
		"a secret that is too long is skipped": {
			job:     list(wants("s1")),
			sources: list(source("s1", strings.Repeat("1", imagepull.MaxPullSecretBytes))),
			notes:   "SecretUnusable shop/s1",
		},
		"not wanted": {
			job:     list(wants("s1")),
			sources: s1,
			copies: list(copyOf("s1", "s1-a", "1", "shop/a"), copyOf("s2", "s2-a", "1", "shop/a"),
				copyOf("s3", "s3-a", "1", "shop/a,shop/b"), copyOf("s4", "s4-a", "1", "shop/b")),
			want: "delete s2-a=1(shop/a); update s3-a=1(shop/b); use s1-a batch",
		},
		"the job has ended": {
			job:     list(wants("s1"), completed(0)),
			sources: s1,
			copies:  list(copyOf("s1", "s1-a", "1", "shop/a"), copyOf("s1", "s1-b", "1", "shop/a,shop/b")),
			want:    "delete s1-a=1(shop/a); update s1-b=1(shop/b)",
		},
		"the job leaves": {
			job:     list(wants("s1"), func(j *v1beta1.ImagePullJob) { j.DeletionTimestamp = ago(0) }),
			sources: s1,
			copies:  list(copyOf("s1", "s1-a", "1", "shop/a")),
			want:    "delete s1-a=1(shop/a)",
		},
		"a namesake has ended": {
			job: list(wants("s1"), completed(0)), sources: s1, copies: list(copyOf("s1", "s1-a", "1", "shop/aa,other/a")),
		},
		"in the nodes' namespace": {
			job:    list(wants("s1", "s2"), func(j *v1beta1.ImagePullJob) { j.Namespace = daemonNamespace }),
			copies: list(copyOf("s1", "s1-a", "1", "shop/a")),
			want:   "use s1; use s2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			claim := imagepull.Claim{Job: pullJob("a", "nginx", test.job...), Sources: test.sources, Copies: test.copies}
			before := jsonOf(claim)
			plan := imagepull.Secrets(claim)
			if jsonOf(claim) != before {
				t.Error("the claim has changed")
			}
			if diff := cmp.Diff(test.want, story(plan)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if codes(plan.Notes) != test.notes {
				t.Errorf("notes %q", codes(plan.Notes))
			}
		})
	}
}

// Of a source its type and docker configuration are copied, and nothing else.
func TestSecretsCopies(t *testing.T) {
	source := secret("shop", "s1", corev1.SecretTypeDockercfg, "{}")
	source.Data["other"] = []byte("stays")
	source.Labels, source.Annotations = map[string]string{"a": "b"}, map[string]string{
		corev1.LastAppliedConfigAnnotation: "x",
	}
	source.Immutable, source.Finalizers, source.CreationTimestamp = ptr.To(true), []string{"a/b"}, *ago(time.Hour)
	claim := imagepull.Claim{
		Job: pullJob("a", "nginx", wants("s1")), Namespace: "elsewhere", Sources: list(nil, source), Random: 7,
	}
	got := imagepull.Secrets(claim).Create[0]
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: got.Name, Annotations: map[string]string{
			"imagepulljobs.kruise.io/source-key": "shop/s1",
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
}

// No more secrets are copied than a job may name, wherever its namespace is.
func TestSecretsAreLimited(t *testing.T) {
	var names []string
	var sources []*corev1.Secret
	for i := range 100 {
		names = append(names, fmt.Sprintf("s%d", i))
		sources = append(sources, secret("shop", names[i], corev1.SecretTypeDockercfg, "{}"))
	}
	plan := imagepull.Secrets(imagepull.Claim{Job: pullJob("a", "nginx", wants(names...)), Sources: sources})
	if len(plan.Create) != imagepull.MaxPullSecrets || len(plan.References) != imagepull.MaxPullSecrets {
		t.Errorf("%d copies, %d references", len(plan.Create), len(plan.References))
	}
	if len(plan.Notes) != 1 || plan.Notes[0].Code != imagepull.NoteBadSecret || plan.Notes[0].Object != "shop/s32" ||
		!imagepull.NeedsUser(plan.Notes[0]) {
		t.Errorf("notes %v, want one about the first secret that is left out", plan.Notes)
	}
	home := func(j *v1beta1.ImagePullJob) { j.Namespace = daemonNamespace }
	if plan := imagepull.Secrets(imagepull.Claim{
		Job: pullJob("a", "nginx", wants(names...), home),
	}); len(plan.References) != imagepull.MaxPullSecrets {
		t.Errorf("%d references", len(plan.References))
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

func TestSecretsNames(t *testing.T) {
	name := strings.Repeat("a", 245) + "." + strings.Repeat("b", 7)
	claim := imagepull.Claim{
		Job: pullJob("a", "nginx", wants(name)), Sources: list(secret("shop", name, corev1.SecretTypeDockercfg, "")),
	}
	first := imagepull.Secrets(claim).Create[0].Name
	if faults := validation.IsDNS1123Subdomain(first); len(faults) > 0 {
		t.Errorf("%s: %v", first, faults)
	}
	if again := imagepull.Secrets(claim).Create[0].Name; again != first {
		t.Errorf("%s, then %s", first, again)
	}
	taken := copyOf("another", first, "", "")
	claim.Copies = list(nil, taken)
	if other := imagepull.Secrets(claim).Create[0].Name; other == first {
		t.Error("a name that is taken")
	}
	claim.Copies, claim.Random = nil, 1
	if other := imagepull.Secrets(claim).Create[0].Name; other == first {
		t.Error("another number makes no other name")
	}
}
