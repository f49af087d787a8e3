//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

// driverName is the driver that installDriver installs.
const driverName = "hostdir.csi.test.kruisekit.dev"

// installDriver installs a CSI driver with the real provisioner and resizer, and waits until all nodes have it. Its
// volumes are below the directory that it returns. The driver goes with the test, whose volumes must be gone by then:
// the kubelet unmounts with it.
func (m *deployed) installDriver(t *testing.T) {
	t.Helper()
	dir, namespace := t.TempDir(), m.Namespace(t)
	filled := []string{"$NAMESPACE", namespace, "$DIR", dir}
	for variable, name := range map[string]string{
		"$HOSTDIR": "csi-hostdir", "$PROVISIONER": "csi-provisioner", "$RESIZER": "csi-resizer",
	} {
		content, err := os.ReadFile(m.Programs(t, binaries.Storage)[name])
		if err != nil {
			t.Fatal(err)
		}
		spec := image.Program(name, content)
		spec.Name = "e2e/" + name + ":dev"
		filled = append(filled, variable, m.Push(t, spec).Name)
	}
	text, err := os.ReadFile("testdata/storage.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "storage.yaml")
	if err := os.WriteFile(file, []byte(strings.NewReplacer(filled...).Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Kubectl(t.Context(), "apply", "-f", file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if _, err := m.Kubectl(ctx, "delete", "--ignore-not-found", "-f", file); err != nil {
			t.Errorf("remove the driver: %v", err)
		}
	})
	if _, err := m.Kubectl(t.Context(), "rollout", "status", "-n", namespace,
		"deployment/csi-controller", "--timeout=1m"); err != nil {
		said, _ := m.Kubectl(t.Context(), "logs", "-n", namespace, "--prefix", "--all-containers",
			"deployment/csi-controller")
		t.Fatalf("%v\n%s", err, said)
	}
	eventually(t, func(ctx context.Context) error {
		var list storagev1.CSINodeList
		if err := m.Client.List(ctx, &list); err != nil {
			return err
		}
		registered := 0
		for i := range list.Items {
			if slices.ContainsFunc(list.Items[i].Spec.Drivers, func(d storagev1.CSINodeDriver) bool {
				return d.Name == driverName
			}) {
				registered++
			}
		}
		if registered < nodes {
			return fmt.Errorf("%d kubelets have the driver", registered)
		}
		return nil
	})
}

// volumes is a StatefulSet with claims.
type volumes struct {
	*deployed
	namespace string
	images    map[string]image.Image
	// broken lists the steps of the rollout that were out of order.
	broken []string
}

const volumesSet = `
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata:
  name: db
spec:
  replicas: 2
  serviceName: db
  selector:
    matchLabels: {app: db}
  volumeClaimUpdateStrategy: {type: OnPodRollingUpdate}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Retain}
  updateStrategy:
    rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}
  template:
    metadata:
      labels: {app: db}
    spec:
      terminationGracePeriodSeconds: 1
      readinessGates: [{conditionType: InPlaceUpdateReady}]
      containers:
      - name: main
        image: %s
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      storageClassName: %s
      resources: {requests: {storage: 1Gi}}
`

// testExpansion has the volumes of a StatefulSet grow, by a real provisioner, a real resizer and the kubelets.
func (m *deployed) testExpansion(t *testing.T) {
	m.installDriver(t)
	v := &volumes{deployed: m, namespace: m.Namespace(t), images: map[string]image.Image{}}
	for _, tag := range []string{"old", "new"} {
		v.images[tag] = m.Push(t, image.Spec{Name: "storage/db:" + tag})
	}
	v.create(t)
	before := v.settles(t, "1Gi", "old", 0)
	for name := range before {
		v.sh(t, name, "echo "+name+" > /data/owner")
	}

	v.change(t, "2Gi", "new")
	during := v.settles(t, "2Gi", "new", 1)
	v.inOrder(t)
	if !maps.Equal(before, during) {
		t.Errorf("pods %v became %v", before, during)
	}
	for name := range before {
		if owner, size := v.sh(t, name, "cat /data/owner"), v.sh(t, name, "cat /data/.size"); owner != name ||
			size != "2147483648" {
			t.Errorf("the volume of %s is of %s, and has %s bytes", name, owner, size)
		}
	}
	v.printed(t)
	v.gone(t)
}

func (v *volumes) create(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "set.yaml")
	text := fmt.Sprintf(volumesSet, v.images["old"].Name, "csi-expands")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Kubectl(t.Context(), "apply", "-n", v.namespace, "-f", file); err != nil {
		t.Fatal(err)
	}
}

// change asks for a size of the claims and an image at once.
func (v *volumes) change(t *testing.T, size, tag string) {
	t.Helper()
	v.broken = nil
	if _, err := v.Kubectl(t.Context(), "patch", "asts", "db", "-n", v.namespace, "--type=json", "-p", fmt.Sprintf(
		`[{"op": "replace", "path": "/spec/volumeClaimTemplates/0/spec/resources/requests/storage", "value": %q},
		  {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": %q}]`,
		size, v.images[tag].Name)); err != nil {
		t.Fatal(err)
	}
}

// settles waits until both pods run an image, with as many restarts, and both volumes have a size. It returns the UIDs
// of the pods. Meanwhile it looks whether the order holds.
func (v *volumes) settles(t *testing.T, size, tag string, restarts int32) map[string]types.UID {
	t.Helper()
	began, uids := time.Now(), map[string]types.UID{}
	eventually(t, func(ctx context.Context) error {
		l, err := v.look(ctx)
		if err != nil {
			return err
		}
		v.broken = append(v.broken, v.disorder(l, size, v.images[tag].Name)...)
		for _, name := range []string{"db-0", "db-1"} {
			pod, claim := l.pods[name], l.claims["data-"+name]
			capacity := claim.Status.Capacity[corev1.ResourceStorage]
			if capacity.String() != size {
				err = errors.Join(err, fmt.Errorf("claim of %s has %s: %+v", name, &capacity, claim.Status.Conditions),
					v.hasten(ctx, &claim, &pod))
			}
			if !ready(&pod) || pod.Spec.Containers[0].Image != v.images[tag].Name ||
				pod.Status.ContainerStatuses[0].RestartCount != restarts {
				err = errors.Join(err, fmt.Errorf("pod %s: %+v", name, pod.Status))
			}
			uids[name] = pod.UID
		}
		return err
	})
	t.Logf("%s and %s after %s", size, tag, time.Since(began).Round(time.Second/10))
	return uids
}

// hasten has the kubelet look at a pod whose file system is to grow. It does that by itself each minute or so, for
// which no test waits.
func (v *volumes) hasten(ctx context.Context, claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) error {
	for _, c := range claim.Status.Conditions {
		if c.Type == corev1.PersistentVolumeClaimFileSystemResizePending && c.Status == corev1.ConditionTrue &&
			pod.UID != "" {
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"test.kruisekit.dev/hastened":%q}}}`, claim.ResourceVersion)
			return v.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(patch)))
		}
	}
	return nil
}

// volumesLook is what is found at one moment: earlier are claims read before the pods, claims and volumes are read
// after them.
type volumesLook struct {
	earlier, claims map[string]corev1.PersistentVolumeClaim
	pods            map[string]corev1.Pod
	volumes         map[string]corev1.PersistentVolume
}

func (v *volumes) look(ctx context.Context) (volumesLook, error) {
	l := volumesLook{pods: map[string]corev1.Pod{}, volumes: map[string]corev1.PersistentVolume{}}
	claims := func(err error) (map[string]corev1.PersistentVolumeClaim, error) {
		all := map[string]corev1.PersistentVolumeClaim{}
		var list corev1.PersistentVolumeClaimList
		err = errors.Join(err, v.Client.List(ctx, &list, client.InNamespace(v.namespace)))
		for _, claim := range list.Items {
			all[claim.Name] = claim
		}
		return all, err
	}
	var err error
	l.earlier, err = claims(nil)
	var pods corev1.PodList
	err = errors.Join(err, v.Client.List(ctx, &pods, client.InNamespace(v.namespace)))
	for _, pod := range pods.Items {
		l.pods[pod.Name] = pod
	}
	l.claims, err = claims(err)
	var volumes corev1.PersistentVolumeList
	err = errors.Join(err, v.Client.List(ctx, &volumes))
	for _, volume := range volumes.Items {
		if ref := volume.Spec.ClaimRef; ref != nil && ref.Namespace == v.namespace {
			l.volumes[ref.Name] = volume
		}
	}
	return l, err
}

// disorder returns what is not in the order of a rollout: the volume of the last pod grows, this pod is updated, and
// then the other one follows.
func (*volumes) disorder(l volumesLook, size, image string) (broken []string) {
	asks := func(claim corev1.PersistentVolumeClaim) string {
		amount := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		return amount.String()
	}
	for _, name := range []string{"db-0", "db-1"} {
		volume := l.volumes["data-"+name]
		if amount := volume.Spec.Capacity[corev1.ResourceStorage]; l.runs(name, image) &&
			amount.String() != size {
			broken = append(broken, fmt.Sprintf("%s is updated, and its volume has %s", name, &amount))
		}
	}
	last := l.claims["data-db-1"]
	pod := l.pods["db-1"]
	if amount := last.Status.Capacity[corev1.ResourceStorage]; asks(l.earlier["data-db-0"]) == size &&
		amount.String() != size {
		broken = append(broken, fmt.Sprintf("the first claim grows, and the last volume has %s", &amount))
	}
	if asks(l.earlier["data-db-0"]) == size && (!l.runs("db-1", image) || !ready(&pod)) {
		broken = append(broken, "the first claim grows, and the last pod is not updated and ready")
	}
	return broken
}

func (l volumesLook) runs(pod, image string) bool {
	spec := l.pods[pod].Spec
	return len(spec.Containers) > 0 && spec.Containers[0].Image == image
}

func (v *volumes) inOrder(t *testing.T) {
	t.Helper()
	for _, text := range v.broken {
		t.Error(text)
	}
}

// printed expects the page to show what kubectl prints of the set and of its claims.
func (v *volumes) printed(t *testing.T) {
	t.Helper()
	const page = "../../docs/kinds/statefulset.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.Join(strings.Fields(string(text)), " ")
	for _, command := range []string{
		"get statefulsets.apps.kruise.io db -o jsonpath={.status.volumeClaims}",
		"get pvc -l app=db -o custom-columns=NAME:.metadata.name,ASKS:.spec.resources.requests.storage," +
			"HAS:.status.capacity.storage",
	} {
		eventually(t, func(ctx context.Context) error { // the status follows
			said, err := v.Kubectl(ctx, append(strings.Fields(command), "-n", v.namespace)...)
			if err == nil && !strings.Contains(shown, strings.Join(strings.Fields(said), " ")) {
				err = fmt.Errorf("%s does not show %q", page, said)
			}
			return err
		})
	}
	for _, command := range []string{"get asts db", "describe asts db"} {
		said, err := v.Kubectl(t.Context(), append(strings.Fields(command), "-n", v.namespace)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("kubectl %s\n%s", command, said)
		if strings.HasPrefix(command, "describe") && !strings.Contains(said, "SuccessfulResize") {
			t.Error("there is no event of a claim that grows")
		}
	}
}

// gone deletes the set, with which its claims go by their policy, and their volumes with them.
func (v *volumes) gone(t *testing.T) {
	t.Helper()
	if _, err := v.Kubectl(t.Context(), "delete", "asts", "db", "-n", v.namespace); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		l, err := v.look(ctx)
		if err == nil && len(l.pods)+len(l.claims)+len(l.volumes) > 0 {
			err = fmt.Errorf("%d pods, %d claims and %d volumes are left", len(l.pods), len(l.claims), len(l.volumes))
		}
		return client.IgnoreNotFound(err)
	})
}

func (v *volumes) sh(t *testing.T, pod, command string) string {
	t.Helper()
	said, err := v.Kubectl(t.Context(), "exec", "-n", v.namespace, pod, "--", "sh", "-c", command)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(said)
}
