package imagepull_test

import (
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
	s := secret(daemonNamespace, name, corev1.SecretTypeDockerConfigJson, data)
	s.Annotations = map[string]string{
		v1beta1.ImagePullSecretSourceKey: "shop/" + source, v1beta1.ImagePullSecretReferencesKey: users,
		v1beta1.ImagePullSecretModeKey: "batch",
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func immutable(s *corev1.Secret) { s.Immutable = ptr.To(true) }
func legacy(s *corev1.Secret)    { delete(s.Annotations, v1beta1.ImagePullSecretModeKey) }

func story(p imagepull.ClaimPlan) string {
	digits := regexp.MustCompile(`-[0-9a-f]{6}$`)
	var all []string
	add := func(what string, secrets []*corev1.Secret) {
		for _, s := range secrets {
			all = append(all, what+" "+digits.ReplaceAllString(s.Name, "-*")+"="+string(s.Data[corev1.DockerConfigJsonKey])+"("+s.Annotations[v1beta1.ImagePullSecretReferencesKey]+")")
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
		return secret("shop", name, corev1.SecretTypeDockerConfigJson, data)
	}
	s1 := list(source("s1", "1"))
	for name, test := range map[string]struct {
		job     []func(*v1beta1.ImagePullJob)
		sources []*corev1.Secret
		copies  []*corev1.Secret
		want    string
		notes   string
	}{
		"no secrets":              {nil, nil, nil, "", ""},
		"a new copy":              {list(wants("s1")), s1, nil, "create s1-*=1(shop/a); use s1-* batch", ""},
		"named twice":             {list(wants("s1", "s1")), s1, nil, "create s1-*=1(shop/a); use s1-* batch", ""},
		"two, in the job's order": {list(wants("s2", "s1")), list(source("s1", "1"), source("s2", "2")), nil, "create s2-*=2(shop/a); create s1-*=1(shop/a); use s2-* batch; use s1-* batch", ""},
		"a copy that fits":        {list(wants("s1")), s1, list(copyOf("s1", "s1-a", "1", "shop/a")), "use s1-a batch", ""},
		"a copy of another job":   {list(wants("s1")), s1, list(copyOf("s1", "s1-a", "1", "shop/b")), "update s1-a=1(shop/a,shop/b); use s1-a batch", ""},
		"users are sorted":        {list(wants("s1")), s1, list(copyOf("s1", "s1-a", "1", " shop/z, ,shop/b,shop/z")), "update s1-a=1(shop/a,shop/b,shop/z); use s1-a batch", ""},
		"other data":              {list(wants("s1")), s1, list(copyOf("s1", "s1-a", "0", "shop/a,shop/b")), "update s1-a=1(shop/a,shop/b); use s1-a batch", ""},
		"a copy without a mode":   {list(wants("s1")), s1, list(copyOf("s1", "s1-a", "1", "shop/a", legacy)), "use s1-a", ""},
		"several, none is used":   {list(wants("s1")), s1, list(copyOf("s1", "s1-b", "1", ""), copyOf("s1", "s1-a", "1", "shop/b")), "update s1-a=1(shop/a,shop/b); use s1-a batch", ""},
		"several, some are used":  {list(wants("s1")), s1, list(copyOf("s1", "s1-d", "1", "shop/b"), copyOf("s1", "s1-c", "1", "shop/a"), copyOf("s1", "s1-b", "1", "shop/a"), copyOf("s1", "s1-a", "1", "")), "use s1-c batch", ""},
		"terminating copies":      {list(wants("s1")), s1, list(copyOf("s1", "s1-a", "1", "shop/a", func(s *corev1.Secret) { s.DeletionTimestamp = ago(0) })), "create s1-*=1(shop/a); use s1-* batch", ""},
		"copies elsewhere":        {list(wants("s1")), s1, list(nil, copyOf("s1", "s1-a", "1", "shop/a", func(s *corev1.Secret) { s.Namespace = "shop" })), "create s1-*=1(shop/a); use s1-* batch", ""},
		"a namesake's copy":       {list(wants("s1")), s1, list(copyOf("s1", "s1-a", "1", "other/a", func(s *corev1.Secret) { s.Annotations[v1beta1.ImagePullSecretSourceKey] = "other/s1" })), "create s1-*=1(shop/a); use s1-* batch", ""},
		"immutable, and old":      {list(wants("s1")), s1, list(copyOf("s1", "s1-a", "0", "shop/a,shop/b", immutable)), "delete s1-a=0(shop/a,shop/b); create s1-*=1(shop/a,shop/b); use s1-* batch", ""},
		"immutable, and fresh":    {list(wants("s1")), s1, list(copyOf("s1", "s1-a", "1", "shop/b", immutable)), "update s1-a=1(shop/a,shop/b); use s1-a batch", ""},
		"another type":            {list(wants("s1")), list(secret("shop", "s1", corev1.SecretTypeDockercfg, "1")), list(copyOf("s1", "s1-a", "0", "shop/a")), "delete s1-a=0(shop/a); create s1-*=(shop/a); use s1-* batch", ""},
		"no source":               {list(wants("s1", "s2")), s1, list(copyOf("s2", "s2-a", "1", "shop/a")), "create s1-*=1(shop/a); use s1-* batch", "SecretMissing shop/s2"},
		"not wanted":              {list(wants("s1")), s1, list(copyOf("s1", "s1-a", "1", "shop/a"), copyOf("s2", "s2-a", "1", "shop/a"), copyOf("s3", "s3-a", "1", "shop/a,shop/b"), copyOf("s4", "s4-a", "1", "shop/b")), "delete s2-a=1(shop/a); update s3-a=1(shop/b); use s1-a batch", ""},
		"the job has ended":       {list(wants("s1"), completed(0)), s1, list(copyOf("s1", "s1-a", "1", "shop/a"), copyOf("s1", "s1-b", "1", "shop/a,shop/b")), "delete s1-a=1(shop/a); update s1-b=1(shop/b)", ""},
		"the job leaves":          {list(wants("s1"), func(j *v1beta1.ImagePullJob) { j.DeletionTimestamp = ago(0) }), s1, list(copyOf("s1", "s1-a", "1", "shop/a")), "delete s1-a=1(shop/a)", ""},
		"a namesake has ended":    {list(wants("s1"), completed(0)), s1, list(copyOf("s1", "s1-a", "1", "shop/aa,other/a")), "", ""},
		"in the nodes' namespace": {list(wants("s1", "s2"), func(j *v1beta1.ImagePullJob) { j.Namespace = daemonNamespace }), nil, list(copyOf("s1", "s1-a", "1", "shop/a")), "use s1; use s2", ""},
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

// Of a source its type and data are copied. The rest is somebody else's.
func TestSecretsCopies(t *testing.T) {
	source := secret("shop", "s1", corev1.SecretTypeDockercfg, "1")
	source.Labels, source.Annotations = map[string]string{"a": "b"}, map[string]string{corev1.LastAppliedConfigAnnotation: "x"}
	source.Immutable, source.Finalizers, source.CreationTimestamp = ptr.To(true), []string{"a/b"}, *ago(time.Hour)
	claim := imagepull.Claim{Job: pullJob("a", "nginx", wants("s1")), Namespace: "elsewhere", Sources: list(nil, source), Random: 7}
	got := imagepull.Secrets(claim).Create[0]
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: got.Name, Annotations: map[string]string{
			"imagepulljobs.kruise.io/source-key": "shop/s1", "imagepulljobs.kruise.io/references": "shop/a", "imagepulljobs.kruise.io/mode": "batch",
		}},
		Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: []byte("1")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
	got.Data[corev1.DockerConfigKey][0] = '2'
	if string(source.Data[corev1.DockerConfigKey]) != "1" {
		t.Error("the copy shares memory with its source")
	}
}

func TestSecretsNames(t *testing.T) {
	name := strings.Repeat("a", 245) + "." + strings.Repeat("b", 7)
	claim := imagepull.Claim{Job: pullJob("a", "nginx", wants(name)), Sources: list(secret("shop", name, corev1.SecretTypeDockercfg, ""))}
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
