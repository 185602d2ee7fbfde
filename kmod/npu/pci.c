// SPDX-License-Identifier: GPL-2.0
/*
 * pci.c - hawk_npu.ko: probe and remove
 *
 * The device is QEMU's ivshmem-doorbell (1af4:1110) whose memory begins with the page of
 * an NPU's board; any other use of ivshmem is left alone.
 *
 * Who ends before whom.  remove: files find no device; no command any more, the firmware
 * is stopped; no interrupt, no watch; whoever is in the device leaves it, and nobody
 * enters; the tier is lost, page tables lead to the BAR no more; the BARs are unmapped.
 * The structure stays as long as the tier or an open file has it.
 */
#include "hawk_npu.h"

#include <linux/dma-mapping.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/slab.h>

#define HAWK_NPU_BAR_REGS	0
#define HAWK_NPU_BAR_MEM	2
#define HAWK_NPU_PEER		8	/* our number for doorbells, in BAR 0 */
#define HAWK_NPU_BOOT_MS	3000	/* for the firmware to be there when the tier is made */

static DEFINE_IDA(hawk_npu_ids);

static void hawk_npu_free(struct kref *ref)
{
	struct hawk_npu *npu = container_of(ref, struct hawk_npu, ref);

	hawk_npu_tier_exit(npu);
	ida_free(&hawk_npu_ids, npu->id);
	kfree(npu);
}

/* Context: may sleep. */
void hawk_npu_put(struct hawk_npu *npu)
{
	kref_put(&npu->ref, hawk_npu_free);
}

/**
 * hawk_npu_enter() - begin to use the device
 * @npu: the device
 *
 * Context: may sleep.
 * Return: whether it is there; it stays so until hawk_npu_leave().
 */
bool hawk_npu_enter(struct hawk_npu *npu)
{
	down_read(&npu->gone_lock);
	if (!npu->gone)
		return true;
	up_read(&npu->gone_lock);
	return false;
}

void hawk_npu_leave(struct hawk_npu *npu)
{
	up_read(&npu->gone_lock);
}

static struct hawk_npu *hawk_npu_alloc(struct pci_dev *pdev)
{
	struct hawk_npu *npu = kzalloc(sizeof(*npu), GFP_KERNEL);

	if (!npu)
		return NULL;
	npu->id = ida_alloc(&hawk_npu_ids, GFP_KERNEL);
	if (npu->id < 0) {
		kfree(npu);
		return NULL;
	}
	kref_init(&npu->ref);
	npu->pdev = pdev;
	init_rwsem(&npu->gone_lock);
	spin_lock_init(&npu->lock);
	init_waitqueue_head(&npu->wait);
	INIT_DELAYED_WORK(&npu->watch, hawk_npu_watch);
	if (hawk_npu_tier_init(npu)) {
		hawk_npu_put(npu);
		return NULL;
	}
	return npu;
}

/* Mappings are the PCI device's, and end after remove. */
static int hawk_npu_map_bars(struct hawk_npu *npu)
{
	struct pci_dev *pdev = npu->pdev;
	resource_size_t start = pci_resource_start(pdev, HAWK_NPU_BAR_MEM);
	resource_size_t len = pci_resource_len(pdev, HAWK_NPU_BAR_MEM);

	if (!pci_resource_len(pdev, HAWK_NPU_BAR_REGS) || len < 2 * HAWK_NPU_MEM_OFF ||
	    pci_msix_vec_count(pdev) < (int)HAWK_NPU_VECTORS)
		return -ENODEV;
	npu->regs = devm_ioremap(&pdev->dev, pci_resource_start(pdev, HAWK_NPU_BAR_REGS),
				 pci_resource_len(pdev, HAWK_NPU_BAR_REGS));
	npu->ctl = devm_ioremap(&pdev->dev, start, HAWK_NPU_MEM_OFF);
	if (!npu->regs || !npu->ctl)
		return -ENOMEM;
	if (hawk_npu_board_read(npu, magic) != HAWK_NPU_MAGIC)
		return -ENODEV;
	if (hawk_npu_board_read(npu, version) != HAWK_NPU_FW_VERSION) {
		dev_err(&pdev->dev, "its board speaks version %u, this driver %u\n",
			hawk_npu_board_read(npu, version), HAWK_NPU_FW_VERSION);
		return -ENODEV;
	}
	npu->mem_phys = start + HAWK_NPU_MEM_OFF;
	npu->mem_bytes = len - HAWK_NPU_MEM_OFF;
	npu->mem = devm_ioremap_wc(&pdev->dev, npu->mem_phys, npu->mem_bytes);
	return npu->mem ? 0 : -ENOMEM;
}

static int hawk_npu_irqs(struct hawk_npu *npu)
{
	struct pci_dev *pdev = npu->pdev;
	int ret;

	ret = pci_alloc_irq_vectors(pdev, HAWK_NPU_VECTORS, HAWK_NPU_VECTORS, PCI_IRQ_MSIX);
	if (ret < 0)
		return ret;
	ret = pci_request_irq(pdev, HAWK_NPU_IRQ_DONE, hawk_npu_irq_done, NULL, npu,
			      "hawk_npu%d-done", npu->id);
	if (ret)
		goto err_vectors;
	ret = pci_request_irq(pdev, HAWK_NPU_IRQ_STATE, hawk_npu_irq_state, NULL, npu,
			      "hawk_npu%d-state", npu->id);
	if (ret)
		goto err_irq_done;
	return 0;

err_irq_done:
	pci_free_irq(pdev, HAWK_NPU_IRQ_DONE, npu);
err_vectors:
	pci_free_irq_vectors(pdev);
	return ret;
}

static void hawk_npu_irqs_end(struct hawk_npu *npu)
{
	pci_free_irq(npu->pdev, HAWK_NPU_IRQ_STATE, npu);
	pci_free_irq(npu->pdev, HAWK_NPU_IRQ_DONE, npu);
	pci_free_irq_vectors(npu->pdev);
}

/* The firmware may have had another driver: it is reset, so that it begins anew with us. */
static void hawk_npu_start(struct hawk_npu *npu)
{
	npu->mem_gen = hawk_npu_board_read(npu, mem_gen);
	npu->boot = hawk_npu_board_read(npu, boot);
	npu->reset_req = hawk_npu_board_read(npu, reset_ack);
	npu->reset_by = jiffies;
	hawk_npu_drv_write(npu, peer, readl(npu->regs + HAWK_NPU_PEER));
	hawk_npu_watch_soon(npu);
	/* Without firmware the CPU does its work: nothing depends on it. */
	wait_event_timeout(npu->wait, READ_ONCE(npu->state) == HAWK_NPU_READY,
			   msecs_to_jiffies(HAWK_NPU_BOOT_MS));
}

/* No interrupt, no work, nobody in the device. */
static void hawk_npu_end(struct hawk_npu *npu)
{
	hawk_npu_stop(npu);
	hawk_npu_irqs_end(npu);
	cancel_delayed_work_sync(&npu->watch);
	down_write(&npu->gone_lock);
	npu->gone = true;
	up_write(&npu->gone_lock);
	cancel_work_sync(&npu->tier_work);
	hawk_provider_lost(npu);
	destroy_workqueue(npu->watch_wq);
}

static int hawk_npu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct hawk_npu *npu;
	int ret;

	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	npu = hawk_npu_alloc(pdev);
	if (!npu)
		return -ENOMEM;
	ret = hawk_npu_map_bars(npu) ?: dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		goto err_put;
	npu->watch_wq = alloc_workqueue("hawk-npu-watch", WQ_UNBOUND | WQ_MEM_RECLAIM, 1);
	if (!npu->watch_wq) {
		ret = -ENOMEM;
		goto err_put;
	}
	ret = hawk_npu_irqs(npu);
	if (ret)
		goto err_watch_wq;
	pci_set_drvdata(pdev, npu);
	hawk_npu_start(npu);
	ret = hawk_npu_tier_add(npu);
	if (ret)
		goto err_end;
	ret = hawk_npu_char_add(npu);
	if (ret)
		goto err_end;
	hawk_npu_debugfs_add(npu);
	return 0;

err_end:
	hawk_npu_end(npu);
	goto err_put;
err_watch_wq:
	destroy_workqueue(npu->watch_wq);
err_put:
	hawk_npu_put(npu);
	return ret;
}

static void hawk_npu_remove(struct pci_dev *pdev)
{
	struct hawk_npu *npu = pci_get_drvdata(pdev);

	hawk_npu_debugfs_remove(npu);
	hawk_npu_char_remove(npu);
	hawk_npu_end(npu);
	hawk_npu_put(npu);
}

static const struct pci_device_id hawk_npu_table[] = {
	{ PCI_DEVICE(0x1af4, 0x1110) },
	{ }
};
MODULE_DEVICE_TABLE(pci, hawk_npu_table);

static struct pci_driver hawk_npu_driver = {
	.name = "hawk_npu",
	.id_table = hawk_npu_table,
	.probe = hawk_npu_probe,
	.remove = hawk_npu_remove,
	.dev_groups = hawk_npu_groups,
};

static int __init hawk_npu_init(void)
{
	int ret;

	hawk_npu_debugfs_init();
	ret = pci_register_driver(&hawk_npu_driver);
	if (ret)
		hawk_npu_debugfs_exit();
	return ret;
}

static void __exit hawk_npu_exit(void)
{
	pci_unregister_driver(&hawk_npu_driver);
	hawk_npu_debugfs_exit();
	ida_destroy(&hawk_npu_ids);
}

module_init(hawk_npu_init);
module_exit(hawk_npu_exit);

MODULE_AUTHOR("The Hawk authors");
MODULE_DESCRIPTION("NPU behind ivshmem: its memory as a tier of hawk");
MODULE_LICENSE("GPL");
HAWK_IMPORT_NS(HAWK);
