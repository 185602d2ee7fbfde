// SPDX-License-Identifier: GPL-2.0
/* 6.17 dropped pfn_t. */
#include <linux/mm.h>

vm_fault_t hawk_probe(struct vm_area_struct *vma, unsigned long pfn);
vm_fault_t hawk_probe(struct vm_area_struct *vma, unsigned long pfn)
{
	return vmf_insert_mixed(vma, vma->vm_start, pfn);
}
