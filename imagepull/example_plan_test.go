package imagepull_test

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

func ExampleParse() {
	r, err := imagepull.Parse("docker.io/library/nginx")
	fmt.Println(r.Name, r.Tag, r.Repository(), err)
	// Output: nginx latest docker.io/library/nginx <nil>
}

func ExampleReference_Among() {
	r, _ := imagepull.Parse("nginx:1.25")
	fmt.Println(r.Among("docker.io/library/nginx:1.25"))
	// Output: true
}

func ExampleReference_Repository() {
	fmt.Println(imagepull.Reference{Name: "team/app"}.Repository())
	// Output: docker.io/team/app
}

func ExampleReference_String() {
	fmt.Println(imagepull.Reference{Name: "nginx", Tag: "1.25"})
	fmt.Println(imagepull.Reference{Name: "nginx", Tag: "sha256:0123"})
	// Output:
	// nginx:1.25
	// nginx@sha256:0123
}

func ExampleReference_Digested() {
	fmt.Println(imagepull.Reference{Name: "nginx", Tag: "sha256:0123"}.Digested())
	// Output: true
}

func ExampleNewKeyring() {
	ring, err := imagepull.NewKeyring(&corev1.Secret{
		Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"*.example.com":{"username":"robot"}}}`)},
	})
	fmt.Println(ring.Lookup("registry.example.com/app")[0].Username, err)
	// Output: robot <nil>
}

func ExampleReadKeyring() {
	ring, err := imagepull.ReadKeyring([]byte(`{"registry.example.com":{"username":"robot"}}`), corev1.SecretTypeDockercfg)
	fmt.Println(ring.Lookup("registry.example.com/app")[0].Username, err)
	// Output: robot <nil>
}

func ExampleKeyring_Then() {
	job, _ := imagepull.ReadKeyring([]byte(`{"registry.example.com":{"username":"job"}}`), corev1.SecretTypeDockercfg)
	node, _ := imagepull.ReadKeyring([]byte(`{"registry.example.com":{"username":"node"}}`), corev1.SecretTypeDockercfg)
	for _, c := range job.Then(node).Lookup("registry.example.com/app") {
		fmt.Println(c.Username)
	}
	// Output:
	// job
	// node
}

func ExampleKeyring_Lookup() {
	ring, _ := imagepull.ReadKeyring([]byte(`{"auths":{"https://index.docker.io/v1/":{"auth":"cm9ib3Q6c2VjcmV0"}}}`),
		corev1.SecretTypeDockerConfigJson)
	fmt.Println(ring.Lookup("docker.io/library/nginx"), ring.Lookup("registry.example.com/app"))
	// Output: [{robot secret  }] []
}

func ExampleMatches() {
	fmt.Println(imagepull.Matches("*.dkr.example.com", "123.dkr.example.com/app"))
	// Output: true
}

func ExampleSelect() {
	job := &v1beta1.ImagePullJob{}
	job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "yes"}},
	}
	a, b := &v1beta1.NodeImage{}, &v1beta1.NodeImage{}
	a.Name, b.Name, b.Labels = "a", "b", map[string]string{"gpu": "yes"}
	nodes, err := imagepull.Select(job, []*v1beta1.NodeImage{a, b}, nil)
	fmt.Println(len(nodes), nodes[0].Name, err)
	// Output: 1 b <nil>
}

func ExampleRule_Matches() {
	job := &v1beta1.ImagePullJob{}
	job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "yes"}},
	}
	rule, err := imagepull.NewRule(job)
	fmt.Println(rule.Matches(map[string]string{"gpu": "yes"}), rule.Matches(nil), err)
	// Output: true false <nil>
}

// The pod of a job with a podSelector gets its node.
func ExampleRule_SelectsAnother() {
	job := &v1beta1.ImagePullJob{}
	job.Spec.PodSelector = &v1beta1.ImagePullJobPodSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}
	rule, err := imagepull.NewRule(job)
	before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	after := before.DeepCopy()
	after.Spec.NodeName = "a"
	fmt.Println(rule.SelectsAnother(before, after), rule.SelectsAnother(after, after), err)
	// Output: true false <nil>
}

func ask() imagepull.Request {
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "warm", UID: "1"}}
	job.Spec.Image = "nginx:1.25"
	job.Default()
	return imagepull.Request{Job: job, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func ExampleRequest_Review() {
	plan, err := ask().Review([]*v1beta1.NodeImage{
		{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, {ObjectMeta: metav1.ObjectMeta{Name: "a"}},
	})
	fmt.Println(plan.Update, plan.Status.Message, err)
	fmt.Println(plan.Notes[0].Text)
	// Output:
	// [b] job is running, progress 0.0% <nil>
	// 1 nodes wait, 1 pull at once
}

func ExampleRequest_Apply() {
	changed, err := ask().Apply(&v1beta1.NodeImage{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(changed.Spec.Images["nginx"].Tags[0].Tag)
	again, _ := ask().Apply(changed)
	fmt.Println(again == nil)
	// Output:
	// 1.25
	// true
}

func ExampleMaintain() {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"zone": "x"}}}
	plan := imagepull.Maintain(imagepull.Upkeep{
		Node: node, Image: &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
	})
	fmt.Println(plan.Update.Labels)
	// Output: map[zone:x]
}

func ExampleTemplateHash() {
	fmt.Println(imagepull.TemplateHash(v1beta1.ImagePullJobTemplate{}))
	// Output: 6b7d768b67
}

func ExampleList() {
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Name: "warm", UID: "1"}}
	list.Spec.Images = []string{"nginx:1.25", "redis:7"}
	for _, job := range imagepull.List(list, nil, time.Time{}).Create {
		fmt.Println(job.GenerateName, job.Spec.Image)
	}
	// Output:
	// warm- nginx:1.25
	// warm- redis:7
}

func ExampleWork() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	node := &v1beta1.NodeImage{Spec: v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{
		"nginx": {Tags: []v1beta1.ImageTagSpec{{Tag: "1.25", CreatedAt: ptr.To(metav1.NewTime(now))}}},
	}}}
	pull := imagepull.Work(node, nil).Start[0]
	pull, turn := pull.Next(now)
	fmt.Println(turn.Do, pull.Reference, "within", turn.Timeout)
	pull = pull.Succeed("sha256:0123", now)
	fmt.Println(imagepull.Work(node, []imagepull.Pull{pull}).Status.Succeeded)
	// Output:
	// Try nginx:1.25 within 10m0s
	// 1
}

func ExamplePull_Next() {
	pull, turn := imagepull.Pull{}.Next(time.Time{})
	fmt.Println(turn.Do, pull.Status.Phase)
	// Output: Try Pulling
}

func ExamplePull_Fail() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pull, _ := imagepull.Pull{}.Next(now)
	_, turn := pull.Fail(errors.New("no route to host").Error(), now).Next(now)
	fmt.Println(turn.Do, turn.Wait)
	// Output: Wait 1s
}

func ExamplePull_Succeed() {
	pull := imagepull.Pull{Reference: imagepull.Reference{Name: "nginx", Tag: "1.25"}}.Succeed("sha256:0123", time.Time{})
	fmt.Println(pull.Status.Phase, pull.Status.ImageID)
	// Output: Succeeded nginx@sha256:0123
}

func ExamplePull_Ended() {
	fmt.Println(imagepull.Pull{}.Ended(), imagepull.Pull{}.Succeed("", time.Now()).Ended())
	// Output: false true
}

func ExamplePlanCopy() {
	plan := imagepull.PlanCopy(imagepull.CopyInput{
		Source: types.NamespacedName{Namespace: "shop", Name: "registry"},
		Secret: &corev1.Secret{Type: corev1.SecretTypeDockerConfigJson},
		Users:  []string{"shop/warm"}, // jobs under way that name it
	})
	fmt.Println(plan.Apply.Namespace, plan.Apply.Annotations[v1beta1.ImagePullSecretReferencesKey])
	// Output: kruise-daemon-config shop/warm
}
