package containerrestart_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
)

func st(name string, p phase, killed bool, message string) state {
	return state{Name: name, Phase: p, IsKilled: killed, Message: message}
}

// nextCase has one field of want or none: write, kill, or another verdict. Without a request, app and log are pending;
// without containers, both run as they did before the request.
type nextCase struct {
	why   string
	work  containerrestart.Work
	write *appsv1beta1.ContainerRecreateRequestStatus
	kill  string
	do    containerrestart.Verdict
	after time.Duration
	notes []string
}

func checkNext(t *testing.T, cases map[string]nextCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.work.Now = at(30)
			if tc.work.Request == nil {
				tc.work.Request = admitted(in(recreating, st("app", pending, false, ""), st("log", pending, false, "")))
			}
			if tc.work.Containers == nil {
				tc.work.Containers = []containerrestart.Container{up("app", 0, -60), up("log", 0, -60)}
			}
			before := text(tc.work)
			action := containerrestart.Next(tc.work)
			if text(tc.work) != before {
				t.Error("the input was changed")
			}
			type outcome struct {
				Do    containerrestart.Verdict
				Write *appsv1beta1.ContainerRecreateRequestStatus
				Kill  string
				After time.Duration
				Notes []string
			}
			want := outcome{tc.do, tc.write, tc.kill, tc.after, tc.notes}
			switch {
			case tc.write != nil:
				want.Do = containerrestart.DoWrite
				want.Write.ContainerStatusSnapshot, want.Write.Conditions = tc.work.Request.Status.ContainerStatusSnapshot,
					tc.work.Request.Status.Conditions
			case tc.kill != "":
				want.Do = containerrestart.DoKill
			case tc.do == "":
				want.Do = containerrestart.DoWait
			}
			got := outcome{Do: action.Verdict, After: action.After, Notes: codes(action.Notes)}
			if action.Write != nil {
				got.Write = ptr.To(statusOf(action.Write))
			}
			if action.Kill != nil {
				got.Kill = action.Kill.Container
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}
