// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The queue pair that executes REG_MR and LOCAL_INV. Queue pairs of user space
 * may not. It is connected to itself, because only a connected one executes.
 */
#include <linux/moduleparam.h>
#include <rdma/ib_cache.h>

#include "internal.h"

/* A card that takes longer has failed; the queue pair is reset then. */
#define FR_TIMEOUT (10 * HZ)

static int fr_to_init(struct fr_queue *queue)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = queue->port,
	};

	return ib_modify_qp(queue->qp, &attr,
			    IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS);
}

/* The address of this port, as its own peer. */
static int fr_own_address(struct fr_queue *queue, struct rdma_ah_attr *ah,
			  const struct ib_port_attr *port)
{
	struct ib_device *ibdev = queue->qp->device;
	union ib_gid gid;
	int ret;

	ah->type = rdma_ah_find_type(ibdev, queue->port);
	rdma_ah_set_port_num(ah, queue->port);
	if (ah->type == RDMA_AH_ATTR_TYPE_IB) {
		rdma_ah_set_dlid(ah, port->lid);
		return 0;
	}
	ret = rdma_query_gid(ibdev, queue->port, queue->gid_index, &gid);
	if (ret)
		return ret;
	rdma_ah_set_grh(ah, &gid, 0, queue->gid_index, 1, 0);
	return 0;
}

static int fr_to_rtr(struct fr_queue *queue)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.dest_qp_num = queue->qp->qp_num,
		.min_rnr_timer = 12,
	};
	struct ib_port_attr port;
	int ret;

	ret = ib_query_port(queue->qp->device, queue->port, &port);
	if (ret)
		return ret;
	attr.path_mtu = port.active_mtu;
	ret = fr_own_address(queue, &attr.ah_attr, &port);
	if (ret)
		return ret;
	return ib_modify_qp(queue->qp, &attr,
			    IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
				    IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
}

static int fr_to_rts(struct fr_queue *queue)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	return ib_modify_qp(queue->qp, &attr,
			    IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
				    IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

static int fr_connect(struct fr_queue *queue)
{
	int ret = fr_to_init(queue);

	if (!ret)
		ret = fr_to_rtr(queue);
	if (!ret)
		ret = fr_to_rts(queue);
	queue->connected = !ret;
	return ret;
}

/* Nothing is in flight afterwards, and everything that was has been reported. */
static void fr_disconnect(struct fr_queue *queue)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	if (queue->connected)
		ib_drain_sq(queue->qp);
	queue->connected = false;
	ib_modify_qp(queue->qp, &attr, IB_QP_STATE);
}

/* Connects again after a failure; the port may have been down meanwhile. */
int fr_queue_ready(struct fr_queue *queue)
{
	if (queue->connected)
		return 0;
	fr_disconnect(queue);
	return fr_connect(queue) ? -ENETDOWN : 0;
}

int fr_queue_open(struct fr_domain *domain)
{
	struct fr_queue *queue = &domain->queue;
	struct ib_qp_init_attr attr = {
		/* One for ib_drain_sq(). */
		.cap = { .max_send_wr = RNICD_FR_OPS_MAX + 1, .max_recv_wr = 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = queue->port,
	};
	struct ib_cq *cq;
	struct ib_qp *qp;

	init_completion(&queue->complete);
	cq = ib_alloc_cq(domain->pd->device, NULL, RNICD_FR_OPS_MAX + 2, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	queue->cq = cq;
	attr.send_cq = cq;
	attr.recv_cq = cq;
	qp = ib_create_qp(domain->pd, &attr);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	queue->qp = qp;
	return fr_connect(queue);
}

void fr_queue_close(struct fr_queue *queue)
{
	if (queue->qp) {
		fr_disconnect(queue);
		ib_destroy_qp(queue->qp);
		queue->qp = NULL;
	}
	if (queue->cq) {
		ib_free_cq(queue->cq);
		queue->cq = NULL;
	}
}

static void fr_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct fr_work *work = container_of(wc->wr_cqe, struct fr_work, cqe);
	struct fr_queue *queue = &work->domain->queue;

	work->status = wc->status;
	work->reported = true;
	if (work == queue->last)
		complete(&queue->complete);
}

#ifdef RNICD_FR_FAULTS
/*
 * For tests only, in a build of its own: the n-th request from now on names a
 * key that is not its own, so that the card refuses it.
 */
static int fail_after;
module_param(fail_after, int, 0600);
MODULE_PARM_DESC(fail_after, "Requests until one fails; 0: none fails");

static void fr_spoil(struct fr_work *work)
{
	if (fail_after <= 0 || --fail_after)
		return;
	if (work->wr.wr.opcode == IB_WR_REG_MR)
		work->wr.key ^= 0x100;
	else
		work->wr.wr.ex.invalidate_rkey ^= 0x100;
}
#else
static void fr_spoil(struct fr_work *work)
{
}
#endif

static void fr_link(struct fr_domain *domain, u32 count)
{
	struct fr_work *work;
	u32 i;

	for (i = 0; i < count; i++) {
		work = &domain->work[i];
		work->domain = domain;
		work->cqe.done = fr_done;
		work->reported = false;
		work->wr.wr.wr_cqe = &work->cqe;
		work->wr.wr.next = i + 1 < count ? &domain->work[i + 1].wr.wr : NULL;
		work->wr.wr.send_flags = i + 1 < count ? 0 : IB_SEND_SIGNALED;
		fr_spoil(work);
	}
	domain->queue.last = &domain->work[count - 1];
	reinit_completion(&domain->queue.complete);
}

/*
 * Executes the first count requests of the domain. Only the last reports a
 * success; each failed one reports itself. Returns 0 if all succeeded, -EIO if
 * not, and -EPROTO if the card accepted only some, and nobody knows which of
 * these were executed. After a failure the queue pair is reset.
 */
int fr_queue_execute(struct fr_domain *domain, u32 count)
{
	struct fr_queue *queue = &domain->queue;
	const struct ib_send_wr *bad;
	int ret;

	fr_link(domain, count);
	ret = ib_post_send(queue->qp, &domain->work[0].wr.wr, &bad);
	if (ret) {
		fr_disconnect(queue);
		return -EPROTO;
	}
	if (!wait_for_completion_timeout(&queue->complete, FR_TIMEOUT) ||
	    queue->last->status != IB_WC_SUCCESS) {
		fr_disconnect(queue);
		return queue->last->reported && queue->last->status == IB_WC_SUCCESS ? 0 : -EIO;
	}
	return 0;
}
