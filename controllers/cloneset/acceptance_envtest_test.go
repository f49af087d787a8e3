//go:build envtest

package cloneset_test

// Which test has which acceptance case of CloneSets. Long times are cut short, or passed by a clock that the test puts
// forward: the case at the test says which.
//
//	 1 scale-out is limited              TestScaleOutIsLimited, TestScaleOutWithUnreadyPods
//	 2 one by one, ready for a while     TestScaleOutOneByOne
//	 3 orphans and released pods         TestReleaseAndOrphans
//	 4 births of two revisions           TestScaleOutOfTwoRevisions
//	 5 ids of claims first               TestIDsOfClaimsComeFirst
//	 6 claims go with their pods         TestClaimsGoWithTheirPods
//	 7 scale-in and availability         TestScaleInWaitsForAvailability, TestScaleInChosenFirst
//	 8 ranks by node and zone            scale: TestVictimsOnOneNode, TestVictimsOverZones
//	 9 order of deletion                 scale: TestVictims, TestDeletionCost
//	10 a chosen pod is held              TestChosenPodIsHeld
//	11 a held pod is not counted         TestHeldPodIsNotCounted
//	12 preNormal                         TestPreNormal
//	13 deadline of a pod on no node      TestDeadlineOfUnschedulablePod
//	14 paused from the beginning         TestProgressOfPausedSet
//	15 no deadline                       TestNoDeadline
//	16 partition of 99%                  TestPartition, TestProgressThroughPartition
//	17 OnDelete                          TestOnDelete, TestOnDeleteThroughScaling
//	18 recreation marks first            TestRecreateMarksFirst
//	19 in place if possible              TestInPlaceIfPossible
//	20 grace period                      TestGracePeriod
//	21 inPlaceUpdate                     TestHooks, TestRollbackWhileHeld
//	22 preparing counts as updated       TestPreparingUpdateCountsAsUpdated
//	23 reuse of claims                   TestClaimsAreReused, TestClaimReuseIsSwitchedOff, TestClaimsAreHandedOver
//	24 changed claim templates           TestRecreateOnClaimChange
//	25 a revision without annotations    TestBareRevisionIsRaised
//	26 image pre-download                not here
//	27 ports of the host                 TestHostPorts; webhooks/cloneset: TestAdmission/HostPorts
//	28 event filter                      not here
//	29 refusals                          webhooks/cloneset: TestAdmission/Refusals, TestAdmission/OnDelete
//	30 arithmetic                        scale: TestDifference*
//	31 defaults                          webhooks/cloneset: TestAdmission/Defaults
//	32 the deadline's clock              TestDeadlineStartsWithTheRollout
//	33 limit of updates                  scale: TestUpdateLimit; TestRolloutKeepsItsBudget
//
// Beside these: TestInvalidSets, TestTemplateLeavesItsSet, TestQuota* and TestRefusalsThatReadDifferently for input that no
// webhook has looked at, TestOverlappingSelectors, TestFaults, TestRestart*, TestTwoManagers, TestFinishedPods.
