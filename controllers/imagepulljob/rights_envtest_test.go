//go:build envtest

package imagepulljob_test

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob"
	"github.com/kruisekit/kruisekit/test/requests"
)

// The rights that the manager is given are enough for a job with secrets, and they are none to look around among
// secrets.
func TestRights(t *testing.T) {
	b := newBench(t)
	b.Beside(b.nodes.add)
	b.have(2)
	user := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: b.Namespace}
	var all, byName rbacv1.ClusterRole
	b.read("../../config/rbac/role.yaml", "kind: ClusterRole\n", &all)
	b.read("../../config/pulljobs/secrets.yaml", "kind: ClusterRole\n", &byName)
	all.Name, all.Rules = b.Namespace, append(all.Rules, byName.Rules...)
	var some rbacv1.Role
	b.read("../../config/daemon/copies.yaml", "kind: Role\n", &some)
	some.Namespace = b.copies
	named := metav1.ObjectMeta{Name: b.Namespace, Namespace: b.copies}
	for _, o := range []client.Object{
		&all, &some,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: named,
			Subjects:   []rbacv1.Subject{user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: all.Name},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: named,
			Subjects:   []rbacv1.Subject{user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: some.Name},
		},
	} {
		if _, cluster := o.(*rbacv1.ClusterRoleBinding); cluster {
			o.SetNamespace("")
		}
		if err := b.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	b.Config = rest.CopyConfig(b.Config)
	b.Config.Impersonate = rest.ImpersonationConfig{UserName: user.Name, Groups: []string{"system:authenticated"}}
	b.reconcile(imagepulljob.Options{SecretPeriod: 100 * time.Millisecond}, plain)

	b.secret("login", `{}`)
	job := b.create("web", "nginx:1", secrets("login"), never)
	b.status(job, "2/0/2/0", "job is running, progress 100.0%")
	b.copied(`login {} web`)
	if err := b.Client.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	b.copied()
	short := b.create("short", "nginx:2", secrets("login"), func(j *v1beta1.ImagePullJob) {
		j.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32)
	})
	b.gone(short)
	if denied := requests.About(b.Asked(), " 403"); len(denied) > 0 {
		t.Errorf("denied: %q", denied)
	}
	limited, err := client.New(b.Config, client.Options{Scheme: b.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := limited.List(t.Context(), &corev1.SecretList{},
		client.InNamespace(b.Namespace)); !apierrors.IsForbidden(err) {
		t.Errorf("it may list secrets: %v", err)
	}
}

// read reads the document of a file that holds some text.
func (b *bench) read(path, text string, into any) {
	b.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		if strings.Contains(document+"\n", "\n"+text) {
			if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
				b.Fatal(err)
			}
			return
		}
	}
	b.Fatalf("%s: nothing with %q", path, text)
}
