//! Calling a purchase off, at every point of its way.

use std::time::Duration;

use testkit::{TestDb, for_each_engine};

use crate::shop::{Answer, SOON, Shop, order};
use crate::world::{Call, HoldState, PaymentState, Trouble, World};

/// Buys while a call of this kind is stuck, and answers the id of the purchase that hangs there.
async fn stuck_at(shop: &Shop, call: Call) -> String {
    shop.world.next(call, Trouble::Stuck);
    let pending = shop.buy("k-1", &order("ann", 1)).await;
    assert_eq!(pending.status, 202, "{}", pending.text);
    pending.id()
}

async fn impatient(db: TestDb) -> Shop {
    Shop::open_with(db, 5, 2, |config| {
        config.lock_wait = Duration::ZERO;
        config.budget = Duration::from_millis(300);
    })
    .await
}

fn refunds(world: &World) -> usize {
    world.calls(Call::Refund)
}

for_each_engine! {
    async fn a_completed_purchase_is_refunded_in_full_and_once(db: TestDb) {
        let shop = Shop::open_with(db, 5, 2, |_| {}).await;
        let bought = shop.buy("k-1", &order("ann", 2)).await;
        let id = bought.id();
        shop.world.next(Call::Refund, Trouble::LostReply);
        let cancelled = shop.cancel(&id).await;
        assert_eq!((cancelled.status, cancelled.json()["status"].as_str()), (200, Some("cancelled")));
        assert_eq!(cancelled.json()["tickets"].as_array().unwrap().len(), 2);
        assert_eq!((shop.world.paid_minor(&id), refunds(&shop.world)), (0, 2));
        // The seats stay sold.
        assert_eq!((shop.world.hold(&id), shop.world.sold()), (Some(HoldState::Confirmed), 2));

        let again = shop.cancel(&id).await;
        assert_eq!((again.status, again.json()["status"].as_str()), (200, Some("cancelled")));
        assert_eq!(refunds(&shop.world), 2);
        // What the buyer was told when it was completed is what a repeat is told.
        let replay = shop.buy("k-1", &order("ann", 2)).await;
        assert_eq!((replay.status, &replay.text), (201, &bought.text));
        let records = shop.get("/v1/audit-records/gala").await.json();
        assert_eq!(records["purchases"][0]["status"], "cancelled");
    }

    async fn a_rejected_purchase_stays_as_it_is(db: TestDb) {
        let shop = Shop::open(db, 1).await;
        let id = shop.buy("k-1", &order("ann", 2)).await.id();
        let cancelled = shop.cancel(&id).await;
        assert_eq!((cancelled.status, cancelled.json()["status"].as_str()), (200, Some("rejected")));
        assert_eq!(cancelled.json()["reason"], "sold-out");
    }

    async fn what_never_was_is_404(db: TestDb) {
        let shop = Shop::open(db, 1).await;
        for answer in [shop.cancel("nothing").await, shop.get("/v1/purchases/nothing").await] {
            assert_eq!((answer.status, answer.slug().as_str()), (404, "purchase-not-found"));
        }
    }

    async fn before_the_pivot_it_is_undone(db: TestDb) {
        let shop = impatient(db).await;
        let id = stuck_at(&shop, Call::Authorize).await;
        let cancelled = shop.cancel(&id).await;
        assert_eq!((cancelled.status, cancelled.json()["status"].as_str()), (202, Some("pending")));
        assert_eq!(cancelled.header("location"), Some(format!("/v1/purchases/{id}").as_str()));
        shop.world.go_on();
        shop.wait_for_status(&id, "rejected").await;
        assert_eq!(shop.world.hold(&id), Some(HoldState::Released));
        assert_eq!(shop.world.payment(&id), Some(PaymentState::Voided));
        let replay = shop.buy("k-1", &order("ann", 1)).await;
        assert_eq!((replay.status, replay.slug().as_str()), (409, "purchase-cancelled"));
        assert_eq!(shop.cancel(&id).await.status, 200);
    }

    async fn after_the_pivot_it_is_completed_first_and_then_refunded(db: TestDb) {
        let shop = impatient(db).await;
        let id = stuck_at(&shop, Call::Capture).await;
        assert_eq!(shop.cancel(&id).await.status, 202);
        shop.world.go_on();
        shop.wait_for_status(&id, "cancelled").await;
        assert_eq!((shop.world.paid_minor(&id), refunds(&shop.world)), (0, 1));
        assert_eq!(shop.buy("k-1", &order("ann", 1)).await.status, 201);
    }

    async fn a_refund_that_does_not_come_through_goes_on_without_the_client(db: TestDb) {
        let shop = impatient(db).await;
        let id = shop.buy("k-1", &order("ann", 1)).await.id();
        shop.world.next(Call::Refund, Trouble::Stuck);
        let cancelled = shop.cancel(&id).await;
        assert_eq!((cancelled.status, cancelled.json()["status"].as_str()), (202, Some("pending")));
        let replay = shop.buy("k-1", &order("ann", 1)).await;
        assert_eq!((replay.status, replay.replayed()), (201, true));
        shop.world.go_on();
        shop.wait_for_status(&id, "cancelled").await;
        assert_eq!(shop.world.paid_minor(&id), 0);
    }

    async fn ten_at_once_refund_once(db: TestDb) {
        let shop = Shop::open_with(db, 5, 2, |_| {}).await;
        let id = shop.buy("k-1", &order("ann", 1)).await.id();
        let answers: Vec<Answer> =
            futures::future::join_all((0..10).map(|_| shop.cancel(&id))).await;
        assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 202)));
        shop.wait_for_status(&id, "cancelled").await;
        assert_eq!((shop.world.paid_minor(&id), refunds(&shop.world)), (0, 1));
        testkit::eventually(SOON, "200", async || (shop.cancel(&id).await.status == 200).then_some(())).await;
    }
}
