//go:build envtest

package cloneset_test

// Which test has which promise of CloneSets. Long times are cut short, or passed by a clock that the test puts forward.
//
//	scale-out is limited              TestScaleOutIsLimited, TestScaleOutWithUnreadyPods
//	one by one, ready for a while     TestScaleOutOneByOne
//	orphans and released pods         TestReleaseAndOrphans
//	births of two revisions           TestScaleOutOfTwoRevisions
//	ids of claims first               TestIDsOfClaimsComeFirst
//	claims go with their pods         TestClaimsGoWithTheirPods
//	scale-in and availability         TestScaleInWaitsForAvailability, TestScaleInChosenFirst
//	ranks by node and zone            scale: TestVictimsOnOneNode, TestVictimsOverZones
//	order of deletion                 scale: TestVictims, TestDeletionCost
//	a chosen pod is held              TestChosenPodIsHeld
//	a held pod is not counted         TestHeldPodIsNotCounted
//	preNormal                         TestPreNormal
//	deadline of a pod on no node      TestDeadlineOfUnschedulablePod
//	paused from the beginning         TestProgressOfPausedSet
//	no deadline                       TestNoDeadline
//	partition of 99%                  TestPartition, TestProgressThroughPartition
//	OnDelete                          TestOnDelete, TestOnDeleteThroughScaling
//	recreation marks first            TestRecreateMarksFirst
//	in place if possible              TestInPlaceIfPossible
//	grace period                      TestGracePeriod
//	inPlaceUpdate                     TestHooks, TestRollbackWhileHeld
//	preparing counts as updated       TestPreparingUpdateCountsAsUpdated
//	reuse of claims                   TestClaimsAreReused, TestClaimReuseIsSwitchedOff, TestClaimsAreHandedOver
//	changed claim templates           TestRecreateOnClaimChange
//	a revision without annotations    TestBareRevisionIsRaised
//	image pre-download                TestPreDownload, TestNoPreDownload, TestPreDownloadLater
//	ports of the host                 TestHostPorts; webhooks/cloneset: TestAdmission/HostPorts
//	event filter                      TestPodEvents, TestSkipQuiet
//	refusals                          webhooks/cloneset: TestAdmission/Refusals, TestAdmission/OnDelete
//	arithmetic                        scale: TestDifference*
//	defaults                          webhooks/cloneset: TestAdmission/Defaults
//	the deadline's clock              TestDeadlineStartsWithTheRollout
//	limit of updates                  scale: TestUpdateLimit; TestRolloutKeepsItsBudget
//
// Beside these: TestInvalidSets, TestTemplateLeavesItsSet, TestQuota* and TestRefusalsThatReadDifferently for input that no
// webhook has looked at, TestOverlappingSelectors, TestFaults, TestRestart*, TestTwoManagers, TestFinishedPods.
