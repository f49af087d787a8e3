package command_test

import "testing"

// podOf returns a pod of the CloneSet web.
func podOf(name string) string {
	return `{apiVersion: v1, kind: Pod, metadata: {name: ` + name + `, namespace: default, labels: {app: web},
  annotations: {kruise.io/sidecarset-working-hotupgrade-container: '{"log":"log-2"}'},
  ownerReferences: [{apiVersion: apps.kruise.io/VERSION, kind: CloneSet, name: web, uid: web, controller: true}]},
  spec: {nodeName: node1, containers: [
    {name: c1, image: a, ports: [{containerPort: 80}], lifecycle: {preStop: {exec: {command: [stop]}}}},
    {name: log-2, image: a}]},
  status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`
}

func TestPods(t *testing.T) {
	web := []string{
		cloneSet, podOf("a"), podOf("b"),
		"{apiVersion: v1, kind: Pod, metadata: {name: other, namespace: default, labels: {app: web}}}",
	}
	try(t, map[string]row{
		"scaledown takes each pod once": {
			objects: web, args: "scaledown cloneset web --pods=a,b,a,",
			out: "# web delete pods [a b] successfully\ncloneset.apps.kruise.io/web selective pod deletion\n",
			writes: []string{`PATCH clonesets/web [{"op":"test","path":"/metadata/generation","value":4},` +
				`{"op":"add","path":"/spec/scaleStrategy","value":{"podsToDelete":["a","b"]}},` +
				`{"op":"add","path":"/spec/replicas","value":1}]`},
		},
		"scaledown refuses the pod of another owner": {
			objects: web, args: "scaledown cloneset/web --pods=a,other", err: `pod "other" is no pod of cloneset "web"`,
		},
		"scaledown of another kind": {
			objects: []string{sidecarSet}, args: "scaledown sidecarset/s --pods=a", err: "currently only supported CloneSet",
		},
		"exec enters a pod of the workload": {
			objects: web, args: "exec cloneset/web -S log -- true", out: "Enter working container log-2 of SidecarSet.",
			err: "exec is not served", writes: []string{"POST pods/a/exec "},
		},
		"expose takes ports and selector of the workload": {
			objects: web, args: "expose cloneset/web", out: "service/web exposed",
			writes: []string{`POST services {"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},` +
				`"spec":{"ports":[{"port":80,"protocol":"TCP","targetPort":80}],"selector":{"app":"web"}},"status":{"loadBalancer":{}}}`},
		},
		"scale": {
			objects: web, args: "scale cloneset/web --replicas=5", out: "cloneset.apps.kruise.io/web scaled",
			writes: []string{`PATCH clonesets/web/scale {"spec":{"replicas":5}}`},
		},
		"autoscale": {
			objects: web, args: "autoscale cloneset/web --max=5", out: "horizontalpodautoscaler.autoscaling/web autoscaled",
			writes: []string{`POST horizontalpodautoscalers {"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2",` +
				`"metadata":{"name":"web","namespace":"default"},"spec":{"scaleTargetRef":{"kind":"CloneSet","name":"web",` +
				`"apiVersion":"apps.kruise.io/VERSION"},"maxReplicas":5},"status":{"desiredReplicas":0,"currentMetrics":null}}`},
		},
	})
}

func TestCreate(t *testing.T) {
	pod := []string{podOf("p")}
	try(t, map[string]row{
		"a request for one container, whose ports and hooks admission takes from the pod": {
			objects: pod, args: "create ContainerRecreateRequest r -p p --containers=c1 -m 5",
			out: "containerrecreaterequest.apps.kruise.io/r created",
			writes: []string{`POST containerrecreaterequests {"apiVersion":"apps.kruise.io/VERSION",` +
				`"kind":"ContainerRecreateRequest","metadata":{"name":"r","namespace":"default"},` +
				`"spec":{"activeDeadlineSeconds":300,"containers":[{"name":"c1"}],"podName":"p","strategy":{"failurePolicy":"Fail",` +
				`"minStartedSeconds":5,"unreadyGracePeriodSeconds":3},"ttlSecondsAfterFinished":1800}}`},
		},
		"a request for a missing container": {
			objects: pod, args: "create crr r -p p --containers=none", err: `pod p has no container "none"`,
		},
		"a broadcast job": {
			args: "create broadcastJob j --image=i -- date", out: "broadcastjob.apps.kruise.io/j created",
			writes: []string{`POST broadcastjobs {"apiVersion":"apps.kruise.io/VERSION","kind":"BroadcastJob",` +
				`"metadata":{"name":"j","namespace":"default"},"spec":{"completionPolicy":{},"failurePolicy":{},` +
				`"template":{"metadata":{},"spec":{"containers":[{"command":["date"],"image":"i","name":"j",` +
				`"resources":{}}],"restartPolicy":"Never"}}}}`},
		},
		"a broadcast job of an AdvancedCronJob": {
			objects: []string{`{apiVersion: apps.kruise.io/VERSION, kind: AdvancedCronJob,
				metadata: {name: c, namespace: default, uid: u},
				spec: {schedule: "* * * * *", template: {broadcastJobTemplate: {metadata: {labels: {a: b}}, spec: {paused: true}}}}}`},
			args: "create bcj j --from=acj/c", out: "created",
			writes: []string{`POST broadcastjobs {"apiVersion":"apps.kruise.io/VERSION","kind":"BroadcastJob",` +
				`"metadata":{"annotations":{"cronjob.kubernetes.io/instantiate":"manual"},"labels":{"a":"b"},"name":"j",` +
				`"namespace":"default","ownerReferences":[{"apiVersion":"apps.kruise.io/VERSION","kind":"AdvancedCronJob",` +
				`"name":"c","uid":"u"}]},"spec":{"completionPolicy":{},"failurePolicy":{},"paused":true,` +
				`"template":{"metadata":{},"spec":{"containers":null}}}}`},
		},
		"a broadcast job without an image": {args: "create broadcastJob j", err: "one of --image and --from"},
		"a job of Kubernetes": {
			args: "create job j --image=i --dry-run=client", out: "job.batch/j created (dry run)",
		},
	})
}
