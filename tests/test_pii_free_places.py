"""Hospitals and addresses in free text, drawn from parts: forms that nothing announces, and what looks like one."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from curate.pii.masking import Masked
from curate.pii.settings import Masking, masker
from curate.records import Span

Form = tuple[str, str, str]
"""What stands in front, the value, what stands behind."""

_TAILS = [
    "出院后一直低烧",
    "那边说要等床位",
    "的病理还没出来",
    "复查正常",
    "住了半个月",
    "转过来的病人",
    "开的药吃完了",
]
_FRONTS = ["", "我爸", "转回", "昨天从", "，", "2021年在", "停药后"]
_CITIES = ["苏州", "徐州", "湛江", "洛阳", "沭阳", "昆山", "青岛市", "大连"]
_OWN = ["九龙", "仁慈", "虹桥", "星元", "康桥", "阜外", "拱北", "建华"]
_KINDS = ["医院", "中医院", "骨科医院", "眼科医院", "康复医院"]


def _announced_by_nothing(draw: random.Random) -> Form:
    return draw.choice(_FRONTS), draw.choice(_CITIES) + draw.choice(_OWN) + draw.choice(_KINDS), draw.choice(_TAILS)


def _of_no_place(draw: random.Random) -> Form:
    name = draw.choice(["康华", "博仁", "慈林", "同德", "恺德", "江滨"]) + draw.choice(["医院", "骨科医院"])
    return draw.choice(["", "转回", "，", "昨天"]), name, draw.choice(_TAILS)


def _place_in_place(draw: random.Random) -> Form:
    inner = draw.choice(
        [
            "南京鼓楼医院",
            "上海浦东仁济医院南院",
            "武汉协和江北医院",
            "成都青羊同善医院",
            "深圳龙岗中心医院",
            "杭州余杭良渚医院",
            "合肥庐阳逍遥津医院",
            "北京大学第三医院海淀院区",
            "中山大学附属第三医院粤东医院",
            "广东省中医院大学城医院",
            "无锡惠山区堰桥街道社区卫生服务中心",
            "苏州相城渭塘医院",
        ]
    )
    return draw.choice(["", "去", "人在", "病人由"]), inner, draw.choice([*_TAILS, "，等着做手术", ""])


def _short(draw: random.Random) -> Form:
    name = draw.choice(
        [
            "省立",
            "三〇一",
            "协和",
            "华西",
            "湘雅二院",
            "军总",
            "市一院",
            "齐鲁",
            "瑞金",
            "浙二",
            "附二院",
            "海总",
            "西京",
        ]
    )
    behind = ["的专家号怎么挂", "急诊把人收了", "血液科排队", "的医生说可以手术", "住院的时候", "挂不上号"]
    return draw.choice(["", "我妈在", "转到", "，"]), name, draw.choice(behind)


def _of_the_army(draw: random.Random) -> Form:
    name = draw.choice(
        [
            "武警湖南总队医院",
            "武警总队医院",
            "四六〇医院",
            "联勤保障部队第九〇〇医院",
            "南部战区总医院",
            "解放军总医院",
            "济南军区总医院",
            "海军总医院",
            "第四军医大学附属西京医院",
        ]
    )
    return draw.choice(["", "在", "转到"]), name, draw.choice(["骨科出院小结", "住院", "体检中心"])


def _beyond_a_crossing(draw: random.Random) -> Form:
    upper = draw.choice(["", "", "郑州市金水区", "安徽省合肥市包河区", "济南市历城区"])
    roads = draw.choice(["中山路与人民路", "长江路黄河路", "红旗路跟前进路", "建设大街和友谊路", "解放路、文昌路"])
    crossing = draw.choice(["交叉口", "路口", "交汇处", "交口", "十字路口"])
    way = draw.choice(["往东200米路北", "向南50米", "东北角", "西侧", "以西100米路南", "西行80米", "往北约300米路东"])
    house = draw.choice(["3号楼", "12号", "8号院2号楼1单元302室", "幸福小区3栋2单元501", ""])
    return (
        draw.choice(["家住", "地址:", "寄到", "现住址："]),
        upper + roads + crossing + way + house,
        draw.choice(["", "，谢谢"]),
    )


FORMS: dict[str, tuple[str, Callable[[random.Random], Form]]] = {
    "announced by nothing": ("hospital", _announced_by_nothing),
    "of no place": ("hospital", _of_no_place),
    "place in place": ("hospital", _place_in_place),
    "short": ("hospital", _short),
    "of the army": ("hospital", _of_the_army),
    "beyond a crossing": ("address", _beyond_a_crossing),
}


def _drawn(form: str, seed: int, many: int) -> Iterator[tuple[str, Span]]:
    kind, make = FORMS[form]
    draw = random.Random(seed)
    for _ in range(many):
        front, value, behind = make(draw)
        yield front + value + behind, Span(len(front), len(front) + len(value), kind, "")


def _masked(text: str) -> Masked:
    return masker(Masking(), "zh", b"k" * 32).mask(text)


def _places(text: str) -> list[tuple[int, int, str]]:
    return [(span.start, span.end, span.kind) for span in _masked(text).spans]


@pytest.mark.parametrize("form", FORMS)
def test_drawn_forms_are_found_whole(form: str) -> None:
    for text, span in _drawn(form, seed=15, many=60):
        assert _places(text) == [(span.start, span.end, span.kind)], text


MARKED = """
我在<省立>住了半个月
转到<协和>以后确诊了
<301>挂不上号
带老人去<301>看过，说是退行性变
<３０１>医生说不用吃药
<市一院>拍的片，<市二院>不认
<附二院>的病理和<附一院>对不上
<武大人民>急诊科
<空总>皮肤科看白癜风
想去<宣武>看癫痫
<北医三院>做的试管
<哈医大一院>手术
<重医附二>肝病科
<安医一附院>脑外
<台大>醫師說要開刀
<榮總>掛號
<鼓楼>生殖中心促排
<中山>肝外科门诊加号要几点去
省城跑了两趟，<省立>和<省肿瘤>都说没必要手术
<首钢医院>心内科出院小结
<民航总医院>急诊抢救
<刘庄村卫生室>打针
<李沧区永清路社区卫生服务中心>
<郑家屯镇卫生院>打的狂犬疫苗
<苏北人民医院>重症
病理切片拿去<复肿>会诊
<北儿>抽动门诊一号难求
人已经送<浙二>了，正在抢救
住过<仁济>，伙食一般
<四军大口腔>拔阻生齿
<厦大附一>急诊拍CT
<台大>說要做切片
<成都军区总>消化
<省肿瘤>放疗排期排到下个月
<盛京>小儿外科门诊在哪栋楼
<上海儿童>内分泌科打针
病人自述曾在<沈阳苏家屯红菱医院>静点头孢
<贵阳贵州省骨科医院>住院
<台北榮總新竹分院>復健科
"""


@pytest.mark.parametrize("marked", MARKED.split("\n")[1:-1])
def test_hospitals_as_people_name_them(marked: str) -> None:
    text, found, parts = marked.replace("<", "").replace(">", ""), [], marked.replace(">", "<").split("<")
    for number, part in enumerate(parts):
        if number % 2:
            start = len("".join(parts[:number]))
            found.append((start, start + len(part), "hospital"))
    assert [place for place in _places(text) if place[2] == "hospital"] == found


WAYS = """
家住<大同市平城区御河西路与魏都大道交叉口南100米8号楼>
<107国道与商都路交叉口北200米路西>
快递放<京广路与航海路交叉口向西150米路南升龙城6号院3号楼2单元1701室>
从<五四路与华林路路口往南20米3号>搬走以后就没犯过
车停在<北环路与学府路交叉口南侧辅路15号>就行
<解放大道与香港路交汇处东南角天一大厦12层1203>
老家<张庄村村口往南200米路东第三户>
義診地點:<民生路與復興路交叉口往北100公尺22號>
邮寄:<唐山市路北区新华道与建设路交叉口西北角万达B座1501>
轮椅借用点：<解放路、建设路交叉口西南角2号楼底商>
<太白路与科技路十字西南角>
氧气瓶送<湘江中路与五一大道交汇处向南250米江景花园7栋>
通讯地址写<丹东市振兴区锦山大街与八纬路交叉口东侧22号>
外婆老宅<西大街与鼓楼巷交叉口北侧26号>拆了
<G310与金谷大道交叉口往西500米路南>
<张庄村与310国道交叉口往南100米>
<人民桥与滨河路交叉口往北100米路东>
<中山路12号与人民路交叉口往南20米>
<学府街与体育路路口东北角广场>
<滨江大道与锦绣路交叉口东南角嘉禾药房>
住<文化宫路与园林路路口往南第二个门>
<北新道与卫国路交口往北走200米12楼3门>有产妇
<中山路与人民路交叉口（东北角）3号楼2单元>
<长江路与黄山路交叉口邮局隔壁12号>
<建国路与胜利街转盘东南角12号>
<五一路与解放路交叉口西北方向80米4-2-301>
搬到<滨江路 与 中山路 交叉口 往北 200米>
"""


@pytest.mark.parametrize("marked", WAYS.split("\n")[1:-1])
def test_addresses_go_on_behind_a_crossing(marked: str) -> None:
    text = marked.replace("<", "").replace(">", "")
    assert _places(text) == [(marked.index("<"), marked.index(">") - 1, "address")]


STAY = """
医生还没决定医院就催着缴费了
确认医院有没有床位再过去
出生后医院给打了乙肝疫苗
选择医院时要看资质
一家医院说不能做
取消医院的预约
希望医院能说清楚
术后医院让回家休养
入院后医院给上了呼吸机
大学附属医院做的手术
部队医院看的
武警医院挂号
辖区社区卫生服务中心
每天摄入6300~8400 kJ即可
能量1200-1500kJ
血小板 100-300×10^9/L
红细胞3.5×10^12/L
协和式客机1969年首飞
齐鲁大地流感高发
华西地区降温，注意保暖
华西村的医生
中山装口袋里还有半盒药
我在中山做手术，中山这个城市不错
省立项的科研课题
301号文件规定了报销比例
挂号在301诊室
请到302室做B超
电梯到3楼，301是抽血室
上了301路公交车到医院复查
去华山玩了一天回来腿疼看医生
没空总想去医院看看
冠军总决赛
他和我妥协和解了
人都这样了你们还在挑选医院
还在投诉医院
转成大三阳
中肿瘤标志物升高
湖北儿童接种
手术后复肿，要不要复查
家住瑞金，老人要看病
早日康复患者的经验
北大教授说要少盐
在十字路口东北角广场跳舞扭了脚
从人民桥往北走100米有药店
村口左手边第一家诊所
前面红绿灯往南80米
市三好学生
市二级以上医院住院
附一份检查报告
另一医院检查
同一医院复查
南方医生多
浙一带的医生
当地的省立医院可以检查
前面路口左转就是药店
沿路往东走200米有公交站
前面十字路口往左拐
红绿灯路口往北200米有药店
从路口往西500米
两条路交叉口往东100米有公交站
股动脉与髂动脉交叉口往下2厘米
消化道与呼吸道交叉口
尿道与膀胱交界处向前1厘米
"""


@pytest.mark.parametrize("text", STAY.split("\n")[1:-1])
def test_what_names_nothing_stays(text: str) -> None:
    assert _places(text) == []


@pytest.mark.parametrize("seed", range(3))
def test_general_words_stay_before_and_behind_anything(seed: int) -> None:
    draw = random.Random(seed)
    words = ["当地医院", "县医院", "人民医院", "三甲医院", "中医院", "大医院", "省人民医院", "上级医院", "乡镇卫生院"]
    for _ in range(100):
        text = (
            draw.choice(["", "转回", "昨天从", "我妈在", "，", "人送", "后来找", "听说"])
            + draw.choice(words)
            + draw.choice(_TAILS)
        )
        assert _places(text) == [], text


def test_real_negatives_stay(shared_data: Path) -> None:
    lines = (shared_data / "pii" / "hard_negatives.jsonl").read_text("utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    assert len(texts) == 315
    assert [text for text in texts if _places(text)] == []
